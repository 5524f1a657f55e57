import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import fc from 'fast-check';
import { sumOfOutcomes } from '../../harness/service.js';
import { SeededRandom } from '../../simulator/seeded-random.js';
import { Idempotency } from '../../src/access/idempotency/idempotency.js';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { Database } from '../../src/database/database.js';
import type { Page } from '../../src/http/request/page.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import { type ReadRow, rawRow } from '../../src/imports/parse/row/import-row.js';
import { isImportableId } from '../../src/imports/parse/row/validate-person.js';
import { ImportUploads } from '../../src/imports/upload/import-uploads.service.js';
import { ProviderCells } from '../../src/imports/upload/provider-cells.js';
import { profilePlace } from '../../src/imports/upload/row-places.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { ProfileSeal } from '../../src/people/model/profile.js';
import { Vault } from '../../src/vault/vault.js';
import { ADMIN_KEY } from '../support/app.js';
import { clientLine, clientsCsv, many, NEW_IMPORT, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const SEED = Number(process.env.SEED);
const HEAD = 'externalId,email,firstName,lastName\n';

const world = useWorld({ settings: { IMPORT_BODY_LIMIT: '1 MiB', IMPORT_MAX_ROWS: '2200' } });
const { imported, upload, start, steer, show, rows, rejected } = importsIn(world);

const list = async () => (await world.call<Page<ImportResponse>>('GET', '/v1/imports?limit=200')).body.items;
const putProvider = (id: string) =>
  world.call('PUT', `/v1/providers/${id}`, {
    body: { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Roe' },
  });

describe('an upload', () => {
  const part = `--x\r\ncontent-disposition: form-data; name="providers"; filename="p.csv"\r\ncontent-type: text/csv\r\n\r\n`;
  const cut = 'p-cut,p-cut@example.org,Pia,Cut\n';

  /** Sends the beginning of a body. */
  function begin(type: string, beginning: string, more = {}): ClientRequest {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type, 'content-length': 100_000, ...more };
    const sending = request(`${world.url}/v1/imports?kind=providers`, { method: 'POST', headers });
    sending.on('error', () => {}); // cut, as it is meant to be
    sending.write(beginning);
    return sending;
  }

  /** Waits until `count` imports are in a state. */
  const are = (state: string, count = 1) =>
    world.eventually(`${count} are ${state}`, async () => {
      const found = (await list()).filter((one) => one.state === state);
      return found.length === count ? found : undefined;
    });

  test('whose connection to the database dies fails alone: the service continues', async () => {
    const sending = begin('text/csv', HEAD + cut);
    await are('staging');
    await world.eventually('its connection is cut', async () => {
      const ended = await world.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'notebridge-uploads' AND state = 'idle in transaction'`,
      );
      return ended.length;
    });
    sending.end('p-late,p-late@example.org,Pia,Late\n'.repeat(3_000).slice(0, 100_000));
    expect(await are('failed')).toMatchObject([{ error: { code: 'interrupted' }, counts: { total: 0 } }]);
    expect((await imported('kind=providers', [providersCsv([providerLine('p-1')])])).counts.created).toBe(1);
  });

  test.each([
    ['one file', 'text/csv', HEAD + cut],
    ['several files', 'multipart/form-data; boundary=x', part + HEAD + cut],
  ])('of %s that is interrupted imports nothing and ends as interrupted', async (_, type, beginning) => {
    const sending = begin(type, beginning);
    await are('staging');
    sending.destroy(new Error('cut'));
    expect(await are('failed')).toMatchObject([{ error: { code: 'interrupted' }, counts: { total: 0 } }]);
    await world.settle();
    expect((await world.call('GET', '/v1/providers/p-cut')).status).toBe(404);
  });

  test('with an unreadable file gets 422 with file, line and code; none of it is imported', async () => {
    const body = Buffer.concat([
      Buffer.from(`${HEAD}p-l1,l1@example.org,Pia,Ok\np-l2,l2@example.org,Ren`),
      Buffer.from([0xe9, 0x0a]),
    ]);
    const answer = await upload('kind=providers', 'text/csv', body);
    expect(answer).toMatchObject({
      status: 422,
      body: { type: 'urn:notebridge:problem:unreadable-file', file: 'text/csv', line: 3, code: 'not-utf8' },
    });
    expect(await list()).toMatchObject([{ state: 'failed', error: { code: 'unreadable-file' }, counts: { total: 0 } }]);
    expect((await world.call('GET', '/v1/providers/p-l1')).status).toBe(404);
  });

  test('beyond four open uploads gets 503 and leaves no import; it is accepted once a place is free', async () => {
    const slow = Array.from({ length: 4 }, () => begin('text/csv', HEAD));
    await are('staging', 4);
    const send = () => upload('kind=providers', 'text/csv', `${HEAD}${providerLine('p-fifth')}\n`);
    const fifth = await send();
    expect([fifth.status, fifth.body.type, fifth.headers.get('retry-after')]).toEqual([
      503,
      'urn:notebridge:problem:too-many-uploads',
      '30',
    ]);
    expect(await list()).toHaveLength(4);
    for (const sending of slow) sending.destroy(new Error('cut'));
    await are('failed', 4);
    const accepted = await world.eventually('a place is free', async () => {
      const answer = await send();
      return answer.status === 202 ? answer.body : undefined;
    });
    await world.settle();
    expect((await show(accepted.id)).counts.created).toBe(1);
  });

  test.each<[string, number, string, string, () => string | FormData]>([
    ['above the limit', 413, 'kind=providers', 'text/csv', () => HEAD + 'x'.repeat(1024 * 1024)],
    [
      'of files above the limit together',
      413,
      'kind=providers',
      '',
      () => {
        const form = new FormData();
        for (const name of ['a.csv', 'b.csv'])
          form.append('providers', new Blob([HEAD + 'x'.repeat(600_000)], { type: 'text/csv' }), name);
        return form;
      },
    ],
    ['of more rows than the limit', 413, 'kind=providers', 'text/csv', () => HEAD + 'x\n'.repeat(2_201)],
    ['of an unknown type', 415, 'kind=providers', 'application/pdf', () => '%PDF'],
    ['of FHIR that is called people', 415, 'kind=providers', 'application/fhir+ndjson', () => '{}'],
    ['of an unknown kind', 400, 'kind=people', 'text/csv', () => HEAD],
    ['without a file', 422, 'kind=providers', 'multipart/form-data; boundary=x', () => '--x--\r\n'],
    [
      'of rejected rows as a snapshot',
      422,
      'kind=providers&mode=snapshot',
      'text/csv',
      () => `${HEAD.trim()},line,code,hint,check\np-1,p-1@example.org,Pia,One,2,bad-email,x,abcdefghijkl\n`,
    ],
  ])('%s gets %d', async (_, status, query, type, body) => {
    // An answer may come before the body is sent: fetch then sometimes meets the closed connection first.
    const answer = await world.eventually('it is answered', () => upload(query, type, body()).catch(() => undefined));
    expect(answer.status).toBe(status);
    expect(await world.sql('SELECT 1 FROM import_rows')).toEqual([]);
  });

  describe('with an Idempotency-Key', () => {
    const key = { 'idempotency-key': 'once' };
    const body = `${HEAD}${providerLine('p-once')}\n`;

    test('is one import when it is sent twice', async () => {
      const first = await upload('kind=providers', 'text/csv', body, key);
      await world.settle();
      const second = await upload('kind=providers', 'text/csv', body, key);
      expect([first.status, second.status, second.body.id]).toEqual([202, 202, first.body.id]);
      expect([await list(), world.platform.usersOf('p-once')]).toMatchObject([[{ id: first.body.id }], [{}]]);
    });

    test.each([
      ['other parameters', 'kind=providers&dryRun=true', 'text/csv', body],
      ['another Content-Type', 'kind=providers', 'application/x-ndjson', body],
      ['another Content-Length', 'kind=providers', 'text/csv', `${body}\n`],
    ])('is refused with the same key and %s', async (_, query, type, other) => {
      const first = await upload('kind=providers', 'text/csv', body, key);
      const { status, body: problem } = await upload(query, type, other, key);
      expect([status, problem.type]).toEqual([422, 'urn:notebridge:problem:idempotency-key-reused']);
      expect(await list()).toMatchObject([{ id: first.body.id }]);
    });

    test('is one import when a form is sent again with another boundary', async () => {
      const form = (boundary: string) =>
        upload(
          'kind=providers',
          `multipart/form-data; boundary=${boundary}`,
          `${part.replace('--x', `--${boundary}`)}${body}\r\n--${boundary}--\r\n`,
          key,
        );
      const [first, second] = [await form('x'), await form('y')];
      expect([first.status, second.status, second.body.id]).toEqual([202, 202, first.body.id]);
      expect(second.headers.get('idempotent-replayed')).toBe('true');
    });

    test('is read to its end before a repetition gets the first answer', async () => {
      await upload('kind=providers', 'text/csv', body, key);
      const decided = jest.spyOn(world.get(Idempotency), 'once');
      const sending = begin('text/csv', body.slice(0, 9), { ...key, 'content-length': body.length });
      const steps: string[] = [];
      const answered = once(sending, 'response').then(() => steps.push('answered'));
      await world.eventually('it is known', () => decided.mock.results[0]?.value);
      await world.advance('10 min');
      steps.push('sent');
      sending.end(body.slice(9));
      await answered;
      expect(steps).toEqual(['sent', 'answered']);
    });
  });

  test('whose import is cancelled while it is read gets 409, and none of it is imported', async () => {
    const id = randomUUID();
    async function* content() {
      yield Buffer.from(HEAD);
      await steer(id, 'cancel');
      yield Buffer.from(cut);
    }
    async function* files() {
      yield { name: 'p.csv', field: 'providers', mediaType: 'text/csv', content: content() };
    }
    const asked = { kind: 'providers', mode: 'upsert', dryRun: false, idSystems: [] } as const;
    const sent = world.get(ImportUploads).create(id, { ...asked, idSystems: [] }, files());
    await expect(sent).rejects.toMatchObject({ status: 409, type: 'import-cancelled' });
    await world.work.imports();
    const view = await show(id);
    expect([view.state, view.counts.total, view.finishedAt]).toEqual(['cancelled', 0, expect.any(String)]);
  });

  test('may hold hundreds of files, with a file name or without', async () => {
    const field = (at: number) => {
      const name = at === 0 ? '' : `; filename="p-${at}.csv"`;
      const row = `p-${at},p-${at}@example.org,Pia,N`;
      return `--b\r\nContent-Disposition: form-data; name="providers"${name}\r\nContent-Type: text/csv\r\n\r\n${HEAD}${row}\r\n`;
    };
    const body = `${Array.from({ length: 700 }, (_, at) => field(at)).join('')}--b--\r\n`;
    const answer = await upload('kind=clients', 'multipart/form-data; boundary=b', body);
    expect([answer.status, (await show(answer.body.id)).counts.total]).toEqual([202, 700]);
  });

  test('has its progress sent as events until the end; each adds up', async () => {
    const id = await start('kind=clients', [
      providersCsv([providerLine('p-1')]),
      clientsCsv(many(3, 'c').map((one) => clientLine(one, ['p-1']))),
    ]);
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    const stream = await fetch(`${world.url}/v1/imports/${id}/events`, { headers });
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
    await world.settle();
    const events = (await stream.text()).split('\n\n').filter((event) => event.startsWith('event: progress'));
    const views = events.map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as ImportResponse);
    expect([views[0]?.state, views.at(-1)]).toEqual(['staging', await show(id)]);
    expect(views.at(-1)?.state).toBe('completed');
    for (const view of views) expect(sumOfOutcomes(view)).toBe(view.counts.total);
  });

  const CSV =
    'externalId,email,firstName,lastName,providers\nx-1,x1@example.org,A,B,p-h\nx-2,,"C\n""D""",E,p-h|p-none\nx-3,no,F,G,\n';
  const PEOPLE = [
    '{"externalId":"y-1","firstName":"A","lastName":"B","providers":["p-h"]}',
    '{"externalId":"y-2","email":1}',
    '{"externalId":"y-3","firstName":"A","lastName":"B","room":2}',
  ];
  const FHIR = [
    '{"resourceType":"Practitioner","id":"z-1","name":[{"family":"A","given":["B"]}],"telecom":[{"system":"email","value":"z1@example.org"}]}',
    '{"resourceType":"Patient","id":"z-2","name":[{"text":"A B"}],"generalPractitioner":[{"reference":"Practitioner/z-1"}]}',
    '{"resourceType":"Encounter","status":"finished","subject":{"reference":"Patient/z-2"},"period":{"start":"0001-01-01"},"participant":[{"individual":{"reference":"Practitioner/z-1"}}]}',
  ];
  const BUNDLE = `{"resourceType":"Bundle","entry":[${FHIR.map((one) => `{"resource":${one}}`).join(',')}]}`;
  const FILES = [
    ['kind=clients', 'text/csv', CSV],
    ['kind=providers', 'text/csv', CSV.replaceAll(',', ';')],
    ['kind=clients&defaultProvider=p-h', 'application/x-ndjson', PEOPLE.join('\n')],
    ['kind=fhir', 'application/fhir+ndjson', FHIR.join('\n')],
    ['kind=fhir', 'application/fhir+json', BUNDLE],
  ] as const;
  const TOKENS = [
    ...['"', '""', ',', ';', '\t', '|', '\n', '\r\n', '\\u0000', '\u0000', '\ufeff', '\\ud800', '\\', '{', '}', '['],
    ...[']', 'null', '9999-12-31', '0000', '-1e999', '😀', "'", '=', '{"toString":1}', '"__proto__":1,'],
    ...['"\\u0000":1,', 'line,code,hint'],
  ];
  const INPUTS = propertyRuns(0.03).numRuns;

  test(`of each of ${INPUTS} hostile files gets an answer below 500 and an outcome for each row (SEED=${SEED})`, async () => {
    const random = new SeededRandom(SEED);
    const pick = <T>(items: readonly T[]): T => items[Math.floor(random.fraction() * items.length)] as T;
    const accepted: string[] = [];
    for (let n = 0; n < INPUTS; n++) {
      const [query, type, text] = pick(FILES);
      let bytes = Buffer.from(text);
      for (let edits = Math.floor(random.fraction() * 4); edits >= 0; edits--) {
        const at = Math.floor(random.fraction() * bytes.length);
        const isByte = random.fraction() < 0.15;
        const raw = Buffer.from(isByte ? [Math.floor(random.fraction() * 256)] : Buffer.from(pick(TOKENS)));
        bytes = Buffer.concat([bytes.subarray(0, at), raw, bytes.subarray(at + pick([0, 0, 1, 2, 30]))]);
      }
      const { status, body } = await upload(query, type, bytes);
      if (status === 202) accepted.push(body.id);
      else expect([n, status, body.type]).toEqual([n, 422, 'urn:notebridge:problem:unreadable-file']);
    }
    await world.settle();
    let total = 0;
    for (const id of accepted) {
      const { state, counts } = await show(id);
      expect([state, sumOfOutcomes({ counts }), counts.pending]).toEqual(['completed', counts.total, 0]);
      expect((await rows(id)).length).toBe(counts.total);
      if (counts.rejected > 0) expect((await rejected(id)).length).toBeGreaterThan(1);
      total += counts.total;
    }
    expect(accepted.length).toBeGreaterThan(INPUTS / 4);
    expect(total).toBeGreaterThan(INPUTS / 2);
  });
});

describe('the file of rejected rows', () => {
  test('is safe in a spreadsheet, and comes back corrected', async () => {
    const file = { name: 'clients.csv', type: 'text/csv', content: '' };
    const content =
      'Ward;MRN;Given Name;Family Name;E-Mail;Therapist\n=1+1;c-1;Cleo;Roe;=cmd;p-1\nB;c-2;Ann;Lee;;p-1\n';
    const first = await imported('kind=clients', [providersCsv([providerLine('p-1')]), { ...file, content }]);
    expect(first.counts).toMatchObject({ total: 3, created: 2, rejected: 1 });
    const [header, line = ''] = await rejected(first.id);
    expect(line).toContain("'=cmd");
    expect(line).not.toMatch(/(^|,|")=/);
    const corrected = [header, line.replace("'=cmd", 'c-1@example.org')].join('\r\n');
    const again = await imported('kind=clients', [{ ...file, content: corrected }]);
    expect(again.counts).toMatchObject({ total: 1, created: 1 });
    expect(world.platform.usersOf('c-1')).toMatchObject([{ firstName: 'Cleo', email: 'c-1@example.org' }]);
  });

  // Two batches of an upload, which reads 2,000 rows at a time.
  test('alone shows a cell that names no known provider: nothing else is stored in the clear', async () => {
    const name = 'Dr. Anna Meier';
    await putProvider('p-known');
    const id = await start('kind=clients', [
      clientsCsv([
        clientLine('c-1', ['p-known', 'q-2100']),
        clientLine('c-2', ['p-late', 'p-known']),
        clientLine('c-3', [name]),
        clientLine('c-4', ['p-known', name]),
        clientLine('c-1', [name]),
      ]),
      providersCsv(many(2_100, 'q').map((one) => providerLine(one))),
    ]);
    const lists = async () =>
      (
        await world.sql<{ providers: string[] }>(
          `SELECT providers FROM import_rows WHERE kind = 'client' ORDER BY row_no`,
        )
      ).map(({ providers }) => providers);
    const staged = await lists();
    expect(staged[0]).toEqual(['p-known', expect.stringMatching(/^ \S{44}$/)]);
    expect(staged.flat().filter((one) => !one.startsWith(' '))).toEqual(Array(3).fill('p-known'));
    await putProvider('p-late');
    await world.work.imports();
    const planned = await lists();
    expect(planned.slice(0, 2)).toEqual([
      ['p-known', 'q-2100'],
      ['p-late', 'p-known'],
    ]);
    expect(JSON.stringify(planned)).not.toContain(name);
    const shown = async () =>
      (await rejected(id)).slice(1).map((line) => [4, 6].map((column) => line.split(',')[column]));
    expect(await shown()).toEqual([
      [name, 'unknown-provider'],
      [`p-known|${name}`, 'unknown-provider'],
      [name, 'duplicate-id'],
    ]);
    await world.sql('DELETE FROM import_raw_rows');
    expect(await shown()).toEqual([
      ['', 'unknown-provider'],
      ['p-known', 'unknown-provider'],
      ['', 'duplicate-id'],
    ]);
  });

  test('shows an unknown default provider where the cell was empty', async () => {
    const id = await start('kind=clients&defaultProvider=p-none', [clientsCsv([clientLine('c-9', [])])]);
    await world.work.imports();
    expect((await rejected(id))[1]).toMatch(/^c-9,,Cleo,c-9,p-none,2,unknown-provider,/);
  });
});

describe('stored rows', () => {
  const newImport = async () => (await world.sql<{ id: string }>(NEW_IMPORT))[0]?.id ?? '';
  const rejectedRow = (line: number, raw: string): ReadRow => ({
    ...({ type: 'row', ok: false, span: 1, code: 'bad-json', hint: 'x' } as const),
    ...{ line, raw },
  });

  test(`are what was read, with any characters (SEED=${SEED})`, async () => {
    const [staging, seal, database] = [world.get(StagingRepository), world.get(ProfileSeal), world.get(Database)];
    const odd = ['\\', '"', "'", '{', '}', ',', ' ', 'NULL', '\0', '\n', '\\N', '\ud800', '\udc00', '\u{1f600}', 'é'];
    const unit = fc.oneof(fc.constantFrom(...odd), fc.string({ unit: 'binary', maxLength: 3 }));
    const units = fc.array(unit, { maxLength: 8 }).map((some) => some.join(''));
    const text = fc.oneof(
      { weight: 20, arbitrary: units },
      { weight: 1, arbitrary: fc.constant('\\"'.repeat(30_000)) },
    );
    const externalId = text.map((any) => `x${any}x`).filter(isImportableId);
    const name = text.map((any) => any.replace(/\p{Cs}/gu, '?'));
    const providers = fc.array(externalId, { maxLength: 3 });
    const person = fc.record({ externalId, firstName: name, lastName: name, providers });
    const read = fc.record({ raw: text.map(rawRow), person: fc.option(person) });
    await fc.assert(
      fc.asyncProperty(fc.array(read, { minLength: 1, maxLength: 5 }), async (some) => {
        const importId = await newImport();
        const cells = new ProviderCells(world.get(Vault));
        const staged = some.map(({ raw, person: one }, at) => {
          for (const provider of one?.providers ?? []) cells.brings(provider);
          const row: ReadRow = one
            ? {
                ...({ type: 'row', ok: true, span: 1 } as const),
                line: at + 1,
                raw,
                person: { kind: 'client', ...one },
              }
            : rejectedRow(at + 1, raw);
          return staging.staged(at + 1, 1, row, null, one?.providers ?? []);
        });
        await database.transaction((tx) => staging.storeRows(tx, importId, staging.batch(importId, staged, cells)));
        const stored = await world.sql<{ external_id: string; providers: string[]; profile: Buffer }>(
          'SELECT external_id, providers, profile FROM import_rows WHERE import_id = $1 ORDER BY row_no',
          [importId],
        );
        for (const [at, { raw, person: one }] of some.entries()) {
          const row = stored[at];
          expect([row?.external_id, row?.providers]).toEqual(one ? [one.externalId, one.providers] : [null, []]);
          if (one && row) {
            const opened = seal.openAt(profilePlace(importId, at + 1), row.profile);
            expect(opened).toEqual({ email: null, firstName: one.firstName, lastName: one.lastName });
          }
          expect((await staging.blockOf(importId, at + 1))?.get(at + 1)?.raw).toBe(raw);
        }
      }),
      propertyRuns(0.05),
    );
  });
});
