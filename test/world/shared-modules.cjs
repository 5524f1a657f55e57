// Jest's transform of the product and the harness for the tests of a world: what is compiled is loaded once for all files
// of a process, by Node itself (environment.cjs), where Jest would evaluate it again for each file.
module.exports = {
  process: (_source, file) => ({ code: `module.exports = globalThis.loadShared(${JSON.stringify(file)});` }),
  getCacheKey: (_source, file) => `shared:${file}`,
};
