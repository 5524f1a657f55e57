// Preloaded into a program (node --require): it stops with whoever started it, however that ends. Its standard input is
// a pipe that the parent holds open; when the parent is gone, killed included, the pipe closes.
const stop = () => process.kill(process.pid, 'SIGTERM');

process.stdin.on('end', stop).on('error', stop).resume();
