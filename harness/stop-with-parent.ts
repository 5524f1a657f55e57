// Preloaded into a program (node --require) so that it stops with its parent, even if that is killed: the program's
// standard input is a pipe that the parent holds open, and closes when the parent ends.
import { isMainThread } from 'node:worker_threads';

const stop = () => process.kill(process.pid, 'SIGTERM');

// The standard input of another thread ends immediately.
if (isMainThread) process.stdin.on('end', stop).on('error', stop).resume();
