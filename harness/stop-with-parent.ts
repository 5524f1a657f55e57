// Preloaded into a program (node --require) so that it stops with its parent, even if that is killed: the program's
// standard input is a pipe that the parent holds open, and closes when the parent ends.
const stop = () => process.kill(process.pid, 'SIGTERM');

process.stdin.on('end', stop).on('error', stop).resume();
