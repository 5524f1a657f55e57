import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { parse } from 'csv-parse';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';

/**
 * The minimum work of a re-import: parse, hash each row, COPY, and one SQL comparison with the existing people.
 *
 * @returns milliseconds
 */
export async function bareReimport(databaseUrl: string, csv: Buffer): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query('CREATE TEMP TABLE floor_rows (external_id text, hash bytea)');
    const begun = performance.now();
    const copying = client.query(copyFrom('COPY floor_rows FROM STDIN'));
    const parser = parse(csv, { columns: true });
    let lines = '';
    for await (const row of parser as AsyncIterable<Record<string, string>>) {
      const hash = createHmac('sha256', 'floor')
        .update(JSON.stringify([row.email, row.firstName, row.lastName]))
        .digest('hex');
      lines += `${row.externalId}\t\\\\x${hash}\n`;
      if (lines.length < 256 * 1024) continue;
      if (!copying.write(lines)) await once(copying, 'drain');
      lines = '';
    }
    const finished = once(copying, 'finish');
    copying.end(lines);
    await finished;
    await client.query(
      `SELECT count(*) FROM floor_rows f JOIN people p ON p.kind = 'provider' AND p.external_id = f.external_id
       WHERE p.profile_hash IS DISTINCT FROM f.hash`,
    );
    return performance.now() - begun;
  } finally {
    await client.end();
  }
}
