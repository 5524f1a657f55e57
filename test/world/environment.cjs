// The Jest environment of tests in a world. Each test file has its own globals, but shares modules and running worlds with
// the other files of its process.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { TestEnvironment } = require('jest-environment-node');

const root = path.resolve(__dirname, '../..');
const compiled = /^(src|simulator|harness)\/(.+)\.ts$/;

/** The first element of the message that ends a worker (CHILD_MESSAGE_END in jest-worker). */
const END = 2;

forgetTransformed();
require('reflect-metadata');
process.setSourceMapsEnabled(true);
// Open worlds need no shutdown, because their PostgreSQL is stopped next.
process.on('message', (message) => message?.[0] === END && process.exit(0));

/**
 * Without workers, the global setup ran in this process, and Jest loaded ES modules as CommonJS. They would coexist with
 * the modules that Node loads itself: there would be two Nest loggers, for example.
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
    // Shared with the product, so that decorator metadata is found and `instanceof Error` and `Date` work across both.
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
    // The shared modules outlive the test file, and with them its spies.
    this.moduleMocker?.restoreAllMocks();
    await super.teardown();
  }
};
