import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import path from 'node:path';
import type { Program } from '../../../harness/program.js';
import { until } from '../../../harness/until.js';
import { ROOT } from '../../support/pages.js';
import { usePrograms } from '../../support/programs.js';

const startProgram = usePrograms();

/** A copy of the clone, because the command compiles into dist/ while other suites run it. */
const clone = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'dev-'));

beforeAll(() => {
  const sources = ['client', 'src', 'simulator', 'demo', 'bench', 'harness', 'faults', 'prisma', 'dist'];
  const files = ['package.json', '.swcrc', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json'];
  for (const name of [...sources, ...files]) {
    const isCopied = (file: string) => !file.includes('node_modules') && !file.includes('dist/client-package');
    cpSync(path.join(ROOT, name), path.join(clone, name), { recursive: true, filter: isCopied });
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(clone, 'node_modules'));
});
afterAll(() => rmSync(clone, { recursive: true, force: true }));

/** Any free ports, because other commands may look for the usual ones at the same time. */
const start = (): Promise<Program> =>
  startProgram({
    file: path.join(clone, 'dist/demo/dev.js'),
    env: { PORT: '0', SIMULATOR_PORT: '0', API_DOCS: 'false' },
  });

const startsIn = (output: string): number => output.split('"ready":true').length - 1;

/** The programs that still run: the platform, the service and PostgreSQL. */
async function running(output: string): Promise<string[]> {
  const urls = [...new Set(output.match(/http:\/\/127\.0\.0\.1:\d+/g))];
  const answers = urls.map((url) =>
    fetch(url).then(
      () => [url],
      () => [],
    ),
  );
  const isServed = existsSync(path.join(clone, '.data/dev/postgres/cluster/data/postmaster.pid'));
  return [...(await Promise.all(answers)).flat(), ...(isServed ? ['PostgreSQL'] : [])];
}

const nothingRuns = (dev: Program) =>
  until('no program is left', async () => (await running(dev.output())).length === 0);

describe('npm run dev', () => {
  it('restarts the service after a change of its source, and stops everything', async () => {
    const dev = await start();
    await dev.printed(/"ready":true/);
    expect(await running(dev.output())).toHaveLength(3);
    utimesSync(path.join(clone, 'src/main.ts'), new Date(), new Date());
    await until('the service has started again', () => startsIn(dev.output()) === 2);
    expect(await dev.kill('SIGTERM')).toBe(0);
    await nothingRuns(dev);
  });

  it('gives the service the settings of its environment', async () => {
    const dev = await start();
    await dev.printed(/"ready":true/);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+(?=\/console)/.exec(dev.output()) ?? [];
    expect((await fetch(`${url}/openapi.json`)).status).toBe(404); // by API_DOCS
    await dev.kill('SIGKILL');
    await nothingRuns(dev);
  });
});
