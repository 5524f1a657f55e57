import pg from 'pg';

/** Runs one statement over a connection of its own. */
export async function query<Row extends pg.QueryResultRow>(
  { url }: { readonly url: string },
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
