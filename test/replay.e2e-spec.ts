import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(__dirname, '..');
const SEED = '4711';

const SPEC = `
describe('a rule (of "two")', () => {
  test("it's held: \\$HOME, 50 % & [a|b]*?", () => expect(process.env.SEED).not.toBe('${SEED}'));
  test("it's held: \\$HOME, 50 % & [a|b]*?, and on", () => { throw new Error('always'); });
  test('another', () => {});
});
test('it', () => { throw new Error('always'); });
`;
const HELD = `a rule (of "two") it's held: $HOME, 50 % & [a|b]*?`;

/** A project of its own with the reporter of this one. */
let project: string;

beforeAll(() => {
  project = mkdtempSync(path.join(os.tmpdir(), 'notebridge-replay-'));
  const jest = path.join(ROOT, 'node_modules/jest/bin/jest.js');
  const reporters = [path.join(ROOT, 'scripts/replay-reporter.mjs')];
  mkdirSync(path.join(project, 'test'));
  const files = {
    'package.json': JSON.stringify({ scripts: { test: `node ${jest} --json --outputFile result.json` } }),
    'jest.config.json': JSON.stringify({ reporters, testMatch: ['<rootDir>/test/*.js'], transform: {} }),
    'test/rule.js': SPEC,
    'test/broken.js': `require('./not-there.js');`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(project, name), text);
});
afterAll(() => rmSync(project, { recursive: true }));

/** Runs a line in the project. @returns what Jest told of each test, and the commands that the reporter printed */
async function run(line: string, env: Record<string, string> = {}) {
  const { PATH, HOME } = process.env;
  const child = spawn('sh', ['-c', line], { cwd: project, env: { PATH, HOME, ...env } });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  await new Promise((resolve) => child.once('close', resolve));
  const { testResults } = JSON.parse(readFileSync(path.join(project, 'result.json'), 'utf8')) as {
    testResults: { name: string; status: string; assertionResults: { fullName: string; status: string }[] }[];
  };
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return {
    failed: tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
    passed: tests.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName),
    suites: testResults.map(({ name, status }) => [path.basename(name), status]),
    commands: [...printed.matchAll(/^Replay: (.*)$/gm)].map(([, command = '']) => command),
  };
}

test('for each test that fails one command is printed that, run as it stands, fails on that test only, with the same seed', async () => {
  const { failed, passed, commands } = await run('npm test -- rule', { SEED });
  expect([failed.length, passed.length, commands.length]).toEqual([3, 1, 3]);
  for (const [at, command] of commands.entries()) {
    const replay = await run(command);
    expect([replay.failed, replay.passed, replay.commands]).toEqual([[failed[at]], [], [command]]);
  }
  expect(failed[0]).toBe(HELD);
  const [command = ''] = commands;
  expect(command).toMatch(new RegExp(`^SEED=${SEED} npm test -- test/rule\\.js -t `));
  expect((await run(command.replace(SEED, '1'))).failed).toEqual([]);
});

test('for a suite that can not even begin it is one command for the whole suite', async () => {
  const { commands, suites } = await run('npm test -- broken', { SEED });
  expect([commands, suites]).toEqual([[`SEED=${SEED} npm test -- test/broken.js`], [['broken.js', 'failed']]]);
});
