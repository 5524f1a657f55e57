// Node 20's Jest cannot require() an ES module, and on this stack CommonJS packages do require ESM-only ones
// (@nestjs/swagger -> @nestjs/common 12). So tests run as CommonJS: SWC turns our TypeScript, and every installed ESM
// package that a test reaches, into CommonJS. Cached by Jest after the first run; no --experimental-vm-modules.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Seeds all randomness in the suites. Every worker inherits it. */
process.env.SEED ??= '20261121';

const json = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
const { exclude: _, ...swc } = json('./.swcrc');
const commonjs = { swcrc: false, module: { type: 'commonjs', strict: true } };

const esmPackages = Object.keys(json('./package-lock.json').packages)
  .filter((dir) => dir.startsWith('node_modules/'))
  .filter((dir) => {
    try {
      return json(`./${dir}/package.json`).type === 'module';
    } catch {
      return false; // an optional package of another platform
    }
  });

/** @type {import('jest').Config} */
const base = {
  testEnvironment: 'node',
  moduleFileExtensions: ['js', 'ts', 'mjs', 'cjs', 'json', 'node'],
  transform: {
    '^.+\\.ts$': ['@swc/jest', { ...swc, ...commonjs, sourceMaps: 'inline' }],
    '^.+\\.m?js$': ['@swc/jest', { ...commonjs, jsc: { target: 'es2023', parser: { syntax: 'ecmascript' } } }],
  },
  transformIgnorePatterns: [`<rootDir>/node_modules/(?!(${esmPackages.map((p) => p.slice(13)).join('|')})/)`],
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^@prisma/client/runtime/(.*)\\.mjs$': '@prisma/client/runtime/$1.js',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.data'],
  setupFiles: ['<rootDir>/scripts/forget-storages.cjs', 'reflect-metadata'],
};

/** Starts PostgreSQL and Redis for the suites. */
const servers = {
  globalSetup: '<rootDir>/test/global-setup.mjs',
  globalTeardown: '<rootDir>/test/global-teardown.mjs',
};

export default {
  // Process suites wait for real processes on a machine that may be busy.
  testTimeout: 120_000,
  testSequencer: '<rootDir>/scripts/layer-sequencer.mjs',
  reporters: ['default', '<rootDir>/scripts/progress-reporter.mjs', '<rootDir>/scripts/replay-reporter.mjs'],
  // Suites wait for PostgreSQL and for processes about as long as they compute.
  maxWorkers: Math.min(2 * availableParallelism(), 6),
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['client', 'src', 'simulator', 'demo', 'bench', 'harness', 'faults', 'console'].map(
        (folder) => `<rootDir>/${folder}/**/*.spec.ts`,
      ),
    },
    {
      ...base,
      ...servers,
      displayName: 'process',
      testMatch: ['<rootDir>/test/process/**/*.process-spec.ts'],
    },
    {
      ...base,
      ...servers,
      displayName: 'world',
      testMatch: ['<rootDir>/test/**/*.world-spec.ts'],
      testEnvironment: '<rootDir>/test/world/environment.cjs',
      transform: {
        '/(src|simulator|harness)/(?!.+spec-support).+\\.ts$': '<rootDir>/test/world/shared-modules.cjs',
        ...base.transform,
      },
      moduleNameMapper: { ...base.moduleNameMapper, '^(pg|@nestjs/common)$': '<rootDir>/test/world/packages/$1.cjs' },
      setupFiles: ['<rootDir>/scripts/forget-storages.cjs'],
      restoreMocks: true,
    },
  ],
};
