// Preloaded into the programs that the demo starts: they stop with it, however it ends. Their standard input is a pipe
// that the demo holds open; when the demo is gone, killed included, the pipe closes.
const stop = () => process.kill(process.pid, 'SIGTERM');

process.stdin.on('end', stop).on('error', stop).resume();
