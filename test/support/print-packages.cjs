// Preloaded into a process: at its end it says which packages were loaded.
process.on('exit', () => {
  const names = Object.keys(require.cache).flatMap(
    (file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [],
  );
  process.stderr.write(`\nPackages: ${[...new Set(names)].sort().join(' ')}.\n`);
});
