import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Program } from '../../../harness/program.js';
import { until } from '../../../harness/until.js';
import { usePrograms } from '../../support/programs.js';

const startProgram = usePrograms();

/** A separate folder, because a demo may run in this clone. */
const folder = path.join(process.env.TEST_FOLDER ?? '', 'demo');
beforeAll(() => mkdirSync(folder, { recursive: true }));

const start = (...args: string[]): Promise<Program> =>
  startProgram({ file: 'dist/demo/main.js', args, env: { DATA_DIR: folder, PORT: '0', SIMULATOR_PORT: '0' } });

/** The programs of a demo that still run: platform, service and PostgreSQL. */
async function stillThere(output: string): Promise<string[]> {
  const urls = [...new Set(output.match(/http:\/\/127\.0\.0\.1:\d+/g))];
  const answers = await Promise.all(
    urls.map((url) =>
      fetch(url).then(
        () => [url],
        () => [],
      ),
    ),
  );
  const postgres = existsSync(path.join(folder, 'demo/postgres/cluster/data/postmaster.pid')) ? ['postgres'] : [];
  return [...answers.flat(), ...postgres];
}

const nothingLeft = (output: string) =>
  until('no process of the demo is left', async () => (await stillThere(output)).length === 0);

/** The lines of the output in docs/first-day.md; durations differ, and `…` matches any text. */
function shownInDocs(): RegExp[] {
  const page = readFileSync(path.resolve(__dirname, '../../../docs/first-day.md'), 'utf8');
  const [, shown = ''] = /^```\n( +\d+ rows[\s\S]*?)^```$/m.exec(page) ?? [];
  const lines = shown.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(5);
  return lines.map((line) => {
    const exact = line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    // On a slow machine the calls are spread over more than a minute.
    return new RegExp(
      exact
        .replace(/\d+ s:/, '.*:')
        .replace(/at most \d+/, 'at most \\d+')
        .replace('…', '.*'),
      'm',
    );
  });
}

describe('the demo', () => {
  let output: string;

  beforeAll(async () => {
    const demo = await start('--once');
    expect([await demo.ended(), demo.output()]).toEqual([0, expect.any(String)]);
    output = demo.output();
  });

  it('shows both sides, and leaves nothing running', async () => {
    for (const appointment of ['demo-text', 'demo-recording']) {
      expect(output).toMatch(new RegExp(`appointment=${appointment}: Done, notes revision 1`));
    }
    expect(output).toMatch(/2 found on the platform and linked: P-103, P-108/);
    expect(output).toMatch(/1 need review:\s+C-1006 {2}Another person has this email/);
    expect(output).toMatch(/2 rejected:\s+C-1014 .* line 15.*\s+C-1004 .* line 21/);
    expect(output).toMatch(/at most \d+ of 300 allowed in any minute, 0 rejected/);
    expect(output).toMatch(/39 of 42 rows unchanged, 0 calls to the platform/);
    expect(output).toMatch(/EHR .*C-1002: synced .* providers P-104, P-112\s+platform .*: providers P-104, P-112/);
    expect(output).toMatch(/EHR .*C-1029: deleted\s+platform .*: gone/);
    expect(output).toMatch(/SESSION_PROCESSING_\w*COMPLETED[\s\S]*# Session notes/);
    for (const line of shownInDocs()) expect(output).toMatch(line);
    await nothingLeft(output);
  });

  it('logs no names or emails', () => {
    const texts = ['service.log', 'simulator.log'].map((name) => readFileSync(path.join(folder, 'demo', name), 'utf8'));
    for (const text of texts) expect(text).not.toMatch(/@example|Castellan|Lindqvist/);
  });

  it('keeps its keys readable only by their owner', () => {
    expect(statSync(path.join(folder, 'demo.json')).mode & 0o777).toBe(0o600);
  });
});

describe('a demo that ends early', () => {
  it('runs only once at a time, and leaves nothing behind after SIGKILL', async () => {
    const demo = await start();
    await demo.printed(/of 42 rows/);
    const second = await start();
    expect([await second.ended(), second.output()]).toEqual([1, expect.stringContaining('is already running')]);
    expect(await stillThere(demo.output())).toHaveLength(3);
    const verify = { file: 'dist/src/cli/main.js', args: ['audit', 'verify'], env: { DATA_DIR: folder } };
    const verified = await startProgram(verify);
    expect([await verified.ended(), verified.output()]).toEqual([0, expect.stringContaining('nothing was changed')]);
    await demo.kill('SIGKILL');
    await nothingLeft(demo.output());
  });

  it('stops everything that it has started after SIGINT during the start', async () => {
    const demo = await start();
    await demo.printed(/Starting PostgreSQL/);
    expect(await demo.kill('SIGINT')).toBe(130);
    await nothingLeft(demo.output());
  });
});
