// Runs before each test file. Jest 30 opens an AsyncLocalStorage for each of them and never closes it, nor do the
// libraries that a file loads; before Node 24 every promise of the process is then handed from storage to storage, so
// that after a hundred files a promise costs twenty times as much. Those of the files before this one are closed here.
const { AsyncLocalStorage } = require('node:async_hooks');

const MARK = Symbol.for('notebridge.storages');
const { prototype } = AsyncLocalStorage; // Node's own: the files of one process share it

if (!prototype[MARK]) {
  const opened = new Set();
  Object.defineProperty(prototype, MARK, { value: opened });
  for (const name of ['run', 'enterWith']) {
    const original = prototype[name];
    prototype[name] = function remembered(...args) {
      opened.add(this);
      return original.apply(this, args);
    };
  }
}
for (const storage of prototype[MARK]) storage.disable();
prototype[MARK].clear();
