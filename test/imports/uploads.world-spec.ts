import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import fc from 'fast-check';
import { type ImportFile, sumOfOutcomes } from '../../harness/service.js';
import { SeededRandom } from '../../simulator/seeded-random.js';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { LOCKS } from '../../src/database/advisory-locks.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { Page } from '../../src/http/request/page.js';
import { Idempotency } from '../../src/idempotency/idempotency.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { ReadRow } from '../../src/imports/parse/row/import-row.js';
import { rejection } from '../../src/imports/parse/row/rejection.js';
import { isImportableId } from '../../src/imports/parse/row/validate-person.js';
import { rowPlace } from '../../src/imports/upload/row-places.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { ProfileSeal } from '../../src/people/rules/profile.js';
import { ADMIN_KEY } from '../support/app.js';
import { clientLine, clientsCsv, many, NEW_IMPORT, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const SEED = Number(process.env.SEED);
const HEAD = 'externalId,email,firstName,lastName\n';

const world = useWorld({ settings: { IMPORT_BODY_LIMIT: '1 MiB', IMPORT_MAX_ROWS: '2200' } });
const { imported, upload, start, show, transition, rows, rejected } = importsIn(world);

const list = async () => (await world.call<Page<ImportResponse>>('GET', '/v1/imports?limit=200')).body.items;
const putProvider = (id: string) =>
  world.call('PUT', `/v1/providers/${id}`, {
    body: { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Roe' },
  });

/** Waits until `count` uploads are open. */
const areOpen = (count: number) =>
  world.eventually(`${count} uploads are open`, async () => {
    const [open] = await world.sql<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [LOCKS.openUploads],
    );
    return open?.count === count;
  });

const problem = (type: string) => `urn:notebridge:problem:${type}`;

describe('an upload', () => {
  const part = `--x\r\ncontent-disposition: form-data; name="providers"; filename="p.csv"\r\ncontent-type: text/csv\r\n\r\n`;
  const cut = 'p-cut,p-cut@example.org,Pia,Cut\n';

  /** Sends the beginning of a body. */
  function begin(type: string, beginning: string, more = {}): ClientRequest {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type, 'content-length': 100_000, ...more };
    const sending = request(`${world.url}/v1/imports?kind=providers`, { method: 'POST', headers });
    sending.on('error', () => {}); // tests destroy it
    sending.write(beginning);
    return sending;
  }

  test('is visible with all of its rows at its end, and not before', async () => {
    const body =
      HEAD +
      many(2_100, 'p')
        .map((id) => `${providerLine(id)}\n`)
        .join('');
    const sending = begin('text/csv', body.slice(0, -9), { 'content-length': body.length });
    const answered = once(sending, 'response');
    await areOpen(1);
    await world.work.imports();
    expect(await list()).toEqual([]);
    sending.end(body.slice(-9));
    await answered;
    expect(await list()).toMatchObject([{ state: 'staging', counts: { total: 2_100, pending: 2_100 } }]);
  });

  test.each([
    ['one file', 'text/csv', HEAD + cut],
    ['several files', 'multipart/form-data; boundary=x', part + HEAD + cut],
  ])('leaves nothing if it is interrupted: %s', async (_, type, beginning) => {
    const sending = begin(type, beginning);
    await areOpen(1);
    sending.destroy(new Error('cut'));
    await areOpen(0);
    await world.settle();
    expect([await list(), await world.sql('SELECT FROM import_rows')]).toEqual([[], []]);
    expect((await world.call('GET', '/v1/providers/p-cut')).status).toBe(404);
    const [entry] = await world.eventually('the audit entry', async () => {
      const found = await world.sql(`SELECT outcome FROM audit_entries WHERE action = 'POST /v1/imports'`);
      return found.length > 0 ? found : undefined;
    });
    expect(entry).toEqual({ outcome: 'interrupted' });
  });

  test('leaves nothing if its connection to the database is lost; the service continues', async () => {
    const sending = begin('text/csv', HEAD + cut);
    const answered = once(sending, 'response') as Promise<[{ statusCode: number }]>;
    await areOpen(1);
    await world.eventually('its connection is cut', async () => {
      const ended = await world.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'notebridge-uploads' AND state = 'idle in transaction'`,
      );
      return ended.length;
    });
    sending.end(`p-late,,Pia,${'L'.repeat(100)}\n`.repeat(1_000).slice(0, 100_000 - HEAD.length - cut.length));
    expect((await answered)[0].statusCode).toBe(503);
    expect(await list()).toEqual([]);
    expect((await imported('kind=providers', [providersCsv([providerLine('p-1')])])).counts.created).toBe(1);
  });

  test('with an unreadable file gets 422 with file, line and code, and leaves nothing', async () => {
    const body = Buffer.concat([
      Buffer.from(`${HEAD}p-l1,l1@example.org,Pia,Ok\np-l2,l2@example.org,Ren`),
      Buffer.from([0xe9, 0x0a]),
    ]);
    const answer = await upload('kind=providers', 'text/csv', body);
    expect(answer).toMatchObject({
      status: 422,
      body: { type: problem('unreadable-file'), file: 'text/csv', line: 3, code: 'not-utf8' },
    });
    expect([await list(), await world.sql('SELECT FROM import_rows')]).toEqual([[], []]);
  });

  test('gets 503 while as many as the limit are open, and is accepted once a place is free', async () => {
    const { uploads } = world.get(PrismaService).shares;
    const slow = Array.from({ length: uploads }, () => begin('text/csv', HEAD));
    await areOpen(uploads);
    const send = () => upload('kind=providers', 'text/csv', `${HEAD}${providerLine('p-late')}\n`);
    const refused = await send();
    expect([refused.status, refused.body.type, refused.headers.get('retry-after')]).toEqual([
      503,
      problem('too-many-uploads'),
      '30',
    ]);
    for (const sending of slow) sending.destroy(new Error('cut'));
    await areOpen(0);
    const accepted = await world.eventually('a place is free', async () => {
      const answer = await send();
      return answer.status === 202 ? answer.body : undefined;
    });
    await world.settle();
    expect((await show(accepted.id)).counts.created).toBe(1);
  });

  const form = (name: string, ...files: string[]) => {
    const parts = new FormData();
    for (const [at, text] of files.entries()) parts.append(name, new Blob([text], { type: 'text/csv' }), `${at}.csv`);
    return parts;
  };
  const large = HEAD + 'x'.repeat(600_000);

  test.each<[string, number, string, string, string, string | FormData]>([
    ['above the limit', 413, 'body-too-large', 'kind=providers', 'text/csv', HEAD + 'x'.repeat(1024 * 1024)],
    ['of files above the limit together', 413, 'body-too-large', 'kind=providers', '', form('providers', large, large)],
    ['with more rows than the limit', 413, 'too-many-rows', 'kind=providers', 'text/csv', HEAD + 'x\n'.repeat(2_201)],
    ['of an unknown format', 415, 'unknown-format', 'kind=providers', 'application/pdf', '%PDF'],
    ['of an Excel workbook', 415, 'unknown-format', '', 'text/csv', 'PK\u0003\u0004'],
    ['of an unknown kind', 400, 'validation', 'kind=people', 'text/csv', HEAD],
    ['with an unclear kind', 422, 'unclear-kind', '', 'text/csv', `${HEAD}p-1,,Pia,Roe\n`],
    ['of FHIR as clients', 422, 'unclear-kind', 'kind=clients', 'application/fhir+ndjson', '{}'],
    ['of CSV in a part for FHIR', 422, 'wrong-part', '', '', form('fhir', HEAD)],
    ['without a file', 422, 'no-file', '', 'multipart/form-data; boundary=x', '--x--\r\n'],
    [
      'of rejected rows as a snapshot',
      422,
      'rejected-rows',
      'mode=snapshot',
      'text/csv',
      'kind,externalId,email,firstName,lastName,providers,platformUserId,file,line,code,hint\nprovider,p-1,,,,,,p,2,,\n',
    ],
    ['without a required column', 422, 'unreadable-file', 'kind=providers', 'text/csv', 'Colour,Shape\nred,round\n'],
    ['with an unknown default provider', 422, 'unknown-provider', 'kind=clients&defaultProvider=p-0', 'text/csv', HEAD],
    ['with an unknown column', 422, 'unknown-column', 'kind=clients&columns=email:Mail', 'text/csv', HEAD],
  ])('%s gets %d', async (_, status, type, query, mediaType, body) => {
    // The answer may come before the body is sent: fetch then sometimes meets the closed connection first.
    const answer = await world.eventually('it is answered', () =>
      upload(query, mediaType, body).catch(() => undefined),
    );
    expect([answer.status, answer.body.type]).toEqual([status, problem(type)]);
    expect([await list(), await world.sql('SELECT FROM import_rows')]).toEqual([[], []]);
  });

  test('with an unknown default provider is refused before its end', async () => {
    const sending = request(`${world.url}/v1/imports?kind=clients&defaultProvider=p-0`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv', 'content-length': 1_000_000 },
    });
    sending.on('error', () => {}); // the service closes the connection
    const answered = once(sending, 'response') as Promise<[{ statusCode: number }]>;
    sending.write(HEAD + 'c-1,,Cleo,Roe\n'.repeat(10_000));
    expect((await answered)[0].statusCode).toBe(422);
    sending.destroy();
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

    test('is one import when it is sent again after an interruption', async () => {
      const sending = begin('text/csv', body.slice(0, 50), key);
      await areOpen(1);
      sending.destroy(new Error('cut'));
      await areOpen(0);
      const again = await world.eventually('it is accepted', async () => {
        const answer = await upload('kind=providers', 'text/csv', body, key);
        return answer.status === 202 ? answer.body : undefined;
      });
      expect(await list()).toMatchObject([{ id: again.id, counts: { total: 1 } }]);
    });

    test.each([
      ['other parameters', 'kind=providers&dryRun=true', 'text/csv', body],
      ['another Content-Type', 'kind=providers', 'application/x-ndjson', body],
      ['another Content-Length', 'kind=providers', 'text/csv', `${body}\n`],
    ])('is refused with the same key and %s', async (_, query, type, other) => {
      const first = await upload('kind=providers', 'text/csv', body, key);
      const { status, body: refused } = await upload(query, type, other, key);
      expect([status, refused.type]).toEqual([422, problem('idempotency-key-reused')]);
      expect(await list()).toMatchObject([{ id: first.body.id }]);
    });

    test('is one import when a form is sent again with another boundary', async () => {
      const send = (boundary: string) =>
        upload(
          'kind=providers',
          `multipart/form-data; boundary=${boundary}`,
          `${part.replace('--x', `--${boundary}`)}${body}\r\n--${boundary}--\r\n`,
          key,
        );
      const [first, second] = [await send('x'), await send('y')];
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

  test('may contain hundreds of files, with a file name or without', async () => {
    const field = (at: number) => {
      const name = at === 0 ? '' : `; filename="p-${at}.csv"`;
      const row = `p-${at},p-${at}@example.org,Pia,N`;
      return `--b\r\nContent-Disposition: form-data; name="providers"${name}\r\nContent-Type: text/csv\r\n\r\n${HEAD}${row}\r\n`;
    };
    const body = `${Array.from({ length: 700 }, (_, at) => field(at)).join('')}--b--\r\n`;
    const answer = await upload('', 'multipart/form-data; boundary=b', body);
    expect([answer.status, (await show(answer.body.id)).counts.total]).toEqual([202, 700]);
  });
});

describe('the files of an upload', () => {
  const csv = (name: string, content: string): ImportFile => ({ name, type: 'text/csv', content });

  test('may be in any order: clients may come before the providers that they name', async () => {
    const id = await start('', [
      clientsCsv([clientLine('c-1', ['q-2100']), clientLine('c-2', ['q-none'])]),
      providersCsv(many(2_100, 'q').map((one) => providerLine(one))),
    ]);
    expect((await show(id)).counts).toMatchObject({ total: 2_102, pending: 2_101, rejected: 1 });
    expect(await rows(id, 'outcome=rejected')).toMatchObject([{ externalId: 'c-2', code: 'unknown-provider' }]);
  });

  test('have their kinds detected one by one', async () => {
    const view = await imported('', [
      csv('first.csv', 'Patient ID,First Name,Last Name,Therapist ID\nc-1,Cleo,Roe,p-1\n'),
      csv('second.csv', 'Provider ID,First Name,Last Name,Email\np-1,Pia,Roe,p1@example.org\n'),
      {
        ...csv('third', '{"kind":"client","externalId":"c-2","firstName":"A","lastName":"B","providers":["p-1"]}'),
        type: '',
      },
    ]);
    expect(view).toMatchObject({ kind: 'mixed', counts: { total: 3, created: 3 } });
    expect(view.files.map(({ kind, format }) => `${kind} ${format}`)).toEqual([
      'clients csv',
      'providers csv',
      'both ndjson',
    ]);
  });

  test('show how many rows and empty ids they have', async () => {
    const id = await start('', [providersCsv([providerLine('p-1'), ',,Pia,Roe', 'p-2,no mail,Pia,Roe'])]);
    expect((await show(id)).files).toMatchObject([
      { name: 'providers.csv', kind: 'providers', format: 'csv', rows: 3, emptyIds: 1 },
    ]);
  });

  test('in UTF-16, with semicolons below a title, are read', async () => {
    const text = '\ufeffExport of 1 May\r\n\r\nexternalId;email;firstName;lastName\r\np-ü;p@example.org;Zoë;Roe\r\n';
    const { counts } = await imported('', [{ ...csv('providers.csv', ''), content: Buffer.from(text, 'utf16le') }]);
    expect([counts.created, world.platform.usersOf('p-ü')]).toMatchObject([1, [{ firstName: 'Zoë' }]]);
  });
});

describe('a default provider', () => {
  test('may be in the same upload, and fills empty cells', async () => {
    await imported('defaultProvider=p-1', [
      providersCsv([providerLine('p-1'), providerLine('p-2')]),
      clientsCsv([clientLine('c-1', []), clientLine('c-2', ['p-2'])]),
    ]);
    const lists = await Promise.all(
      ['c-1', 'c-2'].map(async (id) => (await world.call('GET', `/v1/clients/${id}`)).body.providers),
    );
    expect(lists).toEqual([['p-1'], ['p-2']]);
  });

  test('is refused with its place in the request', async () => {
    const { body } = await upload('kind=clients&defaultProvider=p-0', 'text/csv', `${HEAD}c-1,,Cleo,Roe\n`);
    expect(body).toMatchObject({ type: problem('unknown-provider'), pointer: '/defaultProvider' });
  });
});

describe('hostile files', () => {
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
  const BUNDLE = `{"resourceType":"Bundle","type":"history","entry":[${FHIR.map((one) => `{"resource":${one},"request":{"method":"PUT","url":"Patient/z-2"}}`).join(',')}]}`;
  const FILES = [
    ['kind=clients', 'text/csv', CSV],
    ['kind=clients&mode=snapshot', 'text/csv', CSV],
    ['', 'text/csv', CSV.replace('externalId', 'MRN,Chart ID').replaceAll('\nx', '\n7,x')],
    ['kind=providers', 'text/csv', CSV.replaceAll(',', ';')],
    ['kind=clients&defaultProvider=p-h', 'application/x-ndjson', PEOPLE.join('\n')],
    ['kind=fhir', 'application/fhir+ndjson', FHIR.join('\n')],
    ['', 'application/fhir+json', BUNDLE],
  ] as const;
  const TOKENS = [
    ...['"', '""', ',', ';', '\t', '|', '\n', '\r\n', '\\u0000', '\u0000', '\ufeff', '\\ud800', '\\', '{', '}', '['],
    ...[']', 'null', '9999-12-31', '0000', '-1e999', '😀', "'", '=', '{"toString":1}', '"__proto__":1,'],
    ...['"\\u0000":1,', 'line,code,hint', '"meta":{"versionId":"9e99","lastUpdated":"9999"},', '"active":false,'],
  ];
  const REFUSALS = ['unreadable-file', 'unknown-format', 'unclear-kind'].map(problem);
  const INPUTS = propertyRuns(0.03).numRuns;

  test(`get an answer below 500, and an outcome for each row (${INPUTS} files, SEED=${SEED})`, async () => {
    await putProvider('p-h');
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
      else expect([n, status, REFUSALS.includes(body.type)]).toEqual([n, status === 415 ? 415 : 422, true]);
    }
    await world.settle();
    let total = 0;
    for (const id of accepted) {
      let { state } = await show(id);
      if (state === 'needs-mapping') {
        const columns = { externalId: 'MRN' };
        const mapped = await world.call<ImportResponse>('POST', `/v1/imports/${id}/mapping`, { body: { columns } });
        expect([202, 422]).toContain(mapped.status);
      }
      await world.settle();
      ({ state } = await show(id));
      if (state === 'planned')
        await transition(id, 'apply', ['deletes', 'providerRemovals', 'idColumn', 'looksDoubled']);
      if (state === 'needs-mapping') await transition(id, 'cancel');
      await world.settle();
      const { state: ended, error, counts } = await show(id);
      expect([ended, error, counts.pending]).toEqual([state === 'needs-mapping' ? 'cancelled' : 'completed', null, 0]);
      expect([sumOfOutcomes({ counts }), (await rows(id)).filter(({ file }) => file).length]).toEqual([
        counts.total,
        counts.total,
      ]);
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
      'Ward;externalId;firstName;lastName;E-Mail;providers\n=1+1;c-1;Cleo;Roe;=cmd;p-1\nB;c-2;Ann;Lee;;p-1\n';
    const first = await imported('', [providersCsv([providerLine('p-1')]), { ...file, content }]);
    expect(first.counts).toMatchObject({ total: 3, created: 2, rejected: 1 });
    const [header, line = ''] = await rejected(first.id);
    expect(line).toContain("'=cmd");
    expect(line).not.toMatch(/(^|,|")=/);
    const corrected = [header, line.replace("'=cmd", 'c-1@example.org').replace('bad-email', '')].join('\r\n');
    const again = await imported('', [{ ...file, content: corrected }]);
    expect(again.counts).toMatchObject({ total: 1, created: 1 });
    expect(world.platform.usersOf('c-1')).toMatchObject([{ firstName: 'Cleo', email: 'c-1@example.org' }]);
  });

  test('alone shows cells that name no known provider: nothing else stores them in the clear', async () => {
    const name = 'Dr. Anna Meier';
    await putProvider('p-known');
    const id = await start('', [
      clientsCsv([clientLine('c-1', ['p-known']), clientLine('c-3', [name]), clientLine('c-4', ['p-known', name])]),
    ]);
    const stored = async () =>
      JSON.stringify(
        await world.sql('SELECT to_jsonb(r) AS row FROM import_rows r UNION ALL SELECT to_jsonb(i) FROM imports i'),
      );
    expect(await stored()).not.toContain(name);
    await world.work.imports();
    expect(await stored()).not.toContain(name);
    const shown = (await rejected(id)).slice(1).map((line) => [5, 9].map((column) => line.split(',')[column]));
    expect(shown).toEqual([
      [name, 'unknown-provider'],
      [`p-known|${name}`, 'unknown-provider'],
    ]);
  });
});

describe('stored rows', () => {
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
    const name = text.map((any) => `x${any.replace(/\p{Cs}/gu, '?')}x`);
    const providers = fc.array(externalId, { maxLength: 3 });
    const person = fc.record({ externalId, firstName: name, lastName: name, providers });
    const read = fc.record({ cell: name, person: fc.option(person) });
    await fc.assert(
      fc.asyncProperty(fc.array(read, { minLength: 1, maxLength: 5 }), async (some) => {
        const importId = (await world.sql<{ id: string }>(NEW_IMPORT))[0]?.id ?? '';
        const staged = some.map(({ cell, person: one }, at) => {
          const row: ReadRow = one
            ? { type: 'row', line: at + 1, is: 'person', person: { kind: 'client', ...one } }
            : { type: 'row', line: at + 1, is: 'rejected', cells: { lastName: cell }, ...rejection('bad-json') };
          return { rowNo: at + 1, file: 1, row };
        });
        await database.transaction((tx) => staging.store(tx, importId, staged));
        const stored = await world.sql<{ external_id: string; providers: string[]; profile: Buffer; cells: Buffer }>(
          'SELECT external_id, providers, profile, cells FROM import_rows WHERE import_id = $1 ORDER BY row_no',
          [importId],
        );
        for (const [at, { cell, person: one }] of some.entries()) {
          const row = stored[at];
          expect([row?.external_id, row?.providers]).toEqual(one ? [one.externalId, one.providers] : [null, null]);
          if (one && row) {
            const opened = seal.openAt(rowPlace(importId, at + 1, 'profile'), row.profile);
            expect(opened).toEqual({ firstName: one.firstName, lastName: one.lastName });
          } else if (row) expect(staging.openCells(importId, at + 1, row.cells)).toEqual({ lastName: cell });
        }
      }),
      propertyRuns(0.05),
    );
  });
});
