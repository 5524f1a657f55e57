import { until } from '../harness/until.js';
import { Clock } from '../src/config/clock.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from './support/bulk.js';
import { type CountedStatement, countedStatements, explainAll } from './support/counted-plans.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';

/** People of a smaller and a larger import. What is done once for each person grows as they do. */
const FEW = 1_000;
const PROVIDERS = 50;
const MORE = 8;
/** Plans may differ; but who goes through all rows for each row does not eight times but sixty-four times as much. */
const MOST_GROWTH = 2.5 * MORE;
/** Rows that any one statement may go through beside those that grow. */
const NOISE = 2_000;

const TABLES = ['people', 'import_rows', 'client_providers', 'email_claims', 'import_raw_rows', 'import_references'];

interface Situation {
  name: string;
  /** What the planner was told last, before the import. */
  known: (database: TestDatabase) => Promise<unknown>;
}

const SITUATIONS: Situation[] = [
  { name: 'never analysed', known: async () => undefined },
  { name: 'analysed while it was empty', known: (database) => query(database, 'VACUUM ANALYZE') },
];

/** Rows that each statement of a work went through, by its text. */
async function workOf(people: number, { known }: Situation): Promise<Map<string, number>[]> {
  const home = await freshDatabase();
  let app: ImportsApp | undefined;
  try {
    // Nobody looks at the tables behind the import's back: their statistics are as old as can be.
    for (const table of TABLES) await query(home, `ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
    await known(home);
    await explainAll(home);
    app = await startImports(home.url);
    // A count that took long would be followed by a rest, in which other imports are counted again and again.
    jest.spyOn(app.app.get(Clock), 'monotonicMs').mockReturnValue(0);
    const counted = countedStatements(app.database);
    const { stage, steps, imports } = app;
    const summed = (work: () => Promise<unknown>) => async () => {
      counted.length = 0;
      await work();
      return sumOf(counted);
    };
    const providers = many(PROVIDERS, 'p');
    const clients = many(people, 'c');
    const linesOf = (suffix: string) =>
      clients.map((one, at) =>
        clientLine(one, [`p-${(at % providers.length) + 1}`, 'p-1'], `${one}${suffix}@example.org`),
      );
    const send = (suffix: string, mode: 'upsert' | 'snapshot' = 'upsert') =>
      stage({ mode }, [providersCsv(providers.map((one) => providerLine(one))), clientsCsv(linesOf(suffix))]);
    const first = await send('');
    const prepared = await summed(() => steps.prepareAll())();
    const counting = await summed(() => steps.countAll())();
    await send('-new');
    const changed = await summed(() => steps.prepareAll())();
    await imports.cancel(first);
    const cancelled = await summed(() =>
      until('it is taken back', async () => {
        await steps.countAll();
        return (await query(home, 'SELECT 1 FROM imports WHERE id = $1 AND finished_at IS NOT NULL', [first])).length;
      }),
    )();
    return [prepared, counting, changed, cancelled];
  } finally {
    await app?.close();
    await home.drop();
  }
}

function sumOf(counted: readonly CountedStatement[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { text, rows } of counted) sums.set(text, (sums.get(text) ?? 0) + rows);
  return sums;
}

/** The statements whose work grew faster than the people, with how much. */
function outgrown(few: Map<string, number>, more: Map<string, number>): string[] {
  return [...more].flatMap(([text, rows]) => {
    const before = few.get(text) ?? 0;
    const isFair = rows <= before * MOST_GROWTH + NOISE;
    return isFair ? [] : [`${before} → ${rows}: ${text.replace(/\s+/g, ' ').slice(0, 160)}`];
  });
}

test.each(SITUATIONS)(
  'no statement of an import goes by statistics that came before its rows: on a database $name, work grows as people do',
  async (situation) => {
    const few = await workOf(FEW, situation);
    const more = await workOf(FEW * MORE, situation);
    const names = ['applying new people', 'counting', 'applying changes', 'cancelling'];
    const grown = names.flatMap((name, at) =>
      outgrown(few[at] ?? new Map(), more[at] ?? new Map()).map((one) => `${name}: ${one}`),
    );
    expect(grown).toEqual([]);
  },
);
