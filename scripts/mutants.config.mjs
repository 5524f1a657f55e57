// npm run mutants: changes the pure rules in one place at a time, and asks whether a unit test next to them fails (Stryker).
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import jest from '../jest.config.mjs';

const root = path.resolve(import.meta.dirname, '..');

const RULES = [
  'src/people/rules/next-step.ts',
  'src/people/rules/apply-answer.ts',
  'src/sessions/model/session-row.ts',
  'src/sessions/model/apply-fetch.ts',
  'src/platform/pauses/pause-rule.ts',
  'src/webhooks/receive/webhook-signature.ts',
  'src/webhooks/receive/verify-delivery.ts',
  'src/webhooks/receive/refusals.ts',
  'src/subscriptions/push/message.ts',
  'src/imports/model/import-guards.ts',
];

const unit = jest.projects.find(({ displayName }) => displayName === 'unit');

/** Few cases of each property, because all tests of a rule run for each of its mutants. */
process.env.CASES ??= '100';

const folder = '.data/mutants';
mkdirSync(path.join(root, folder), { recursive: true });

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: RULES,
  testRunner: 'jest',
  jest: {
    config: {
      ...unit,
      testMatch: RULES.map((file) => `<rootDir>/${path.dirname(file)}/*.spec.ts`),
      // Models run thousands of histories, too slow for each mutant.
      testPathIgnorePatterns: ['-model\\.spec\\.ts$'],
      // The sandbox has only a link to the packages.
      transformIgnorePatterns: unit.transformIgnorePatterns.map((pattern) => pattern.replace('<rootDir>', root)),
    },
  },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // A busy machine takes seconds for what takes milliseconds. Endless loops are found by counting.
  timeoutMS: 30_000,
  ignorePatterns: ['*', '!src/**', '!scripts/forget-storages.cjs', '!package.json', '!.swcrc'],
  tempDirName: `${folder}/sandboxes`,
  incremental: true,
  incrementalFile: `${folder}/results.json`,
  reporters: ['progress-append-only', 'clear-text', 'json'],
  jsonReporter: { fileName: `${folder}/report.json` },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  allowConsoleColors: false,
  thresholds: { high: 95, low: 90, break: 90 },
};
