// Where the tests of a world run: each file has globals of its own, and shares the modules, and the running worlds, with
// the files that run in this process before and after it.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { TestEnvironment } = require('jest-environment-node');

const root = path.resolve(__dirname, '../..');
const compiled = /^(src|simulator|harness)\/(.+)\.ts$/;

/** The first word of the message by which Jest ends a worker (jest-worker, CHILD_MESSAGE_END). */
const END = 2;

forgetTransformed();
require('reflect-metadata');
process.setSourceMapsEnabled(true);
// The worlds that are left have nothing more to do: their server is stopped next.
process.on('message', (message) => message?.[0] === END && process.exit(0));

/**
 * Without workers the global setup ran in this process, and Jest turned every ES module that it loaded into CommonJS.
 * Those would stand beside the ones that Node loads itself: two of Nest's loggers, say.
 */
function forgetTransformed() {
  const packages = path.join(root, 'node_modules', path.sep);
  for (const file of Object.keys(require.cache)) {
    if (
      file.startsWith(path.join(root, 'dist')) ||
      (file.startsWith(packages) && isModule(file.slice(packages.length)))
    )
      delete require.cache[file];
  }
}

function isModule(file) {
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(file);
  return JSON.parse(readFileSync(path.join(root, 'node_modules', name, 'package.json'), 'utf8')).type === 'module';
}

function loadShared(file) {
  const [, folder, name] = compiled.exec(path.relative(root, file)) ?? [];
  return require(folder ? path.join(root, 'dist', folder, `${name}.js`) : file);
}

module.exports = class WorldEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    // Decorators leave their notes where the product looks for them; a test's errors are errors to the product, and its
    // dates are dates to a test.
    Object.assign(this.global, {
      loadShared,
      Reflect,
      Date,
      Error,
      AggregateError,
      RangeError,
      SyntaxError,
      TypeError,
    });
  }

  async teardown() {
    // What a test spies on outlives its file.
    this.moduleMocker?.restoreAllMocks();
    await super.teardown();
  }
};
