import { type ClientRequest, request } from 'node:http';
import { type Service, sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Page } from '../src/http/request/page.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { ADMIN_KEY } from './support/app.js';
import {
  clientLine,
  clientsCsv,
  imported,
  importIs,
  importOf,
  many,
  providerLine,
  providersCsv,
  rejectedCsv,
  rowsOf,
} from './support/bulk.js';
import { type Mirror, useMirrors } from './support/service.js';

const SEED = Number(process.env.SEED);
const INPUTS = 200;

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror({ calls: 60_000, env: { IMPORT_BODY_LIMIT: '1 MiB', PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
});

interface Sent {
  status: number;
  headers: Headers;
  body: ImportResponse & { type: string; file?: string; line?: number; code?: string };
}

/**
 * Sends one raw body, again when the database had no time for it. An answer may come before the body is sent: now and
 * then fetch meets the closed connection first.
 */
function send(query: string, type: string, body: string | Buffer | FormData, headers: object = {}): Promise<Sent> {
  return until('the upload is answered', async () => {
    const response = await fetch(`${service.url}/v1/imports?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, ...(type && { 'content-type': type }), ...headers },
      body: Buffer.isBuffer(body) ? new Uint8Array(body) : body,
    }).catch(() => undefined);
    const text = await response?.text();
    if (!response || !text || text.includes('problem:database-unavailable')) return undefined;
    return { status: response.status, headers: response.headers, body: JSON.parse(text) };
  });
}

const newest = async () => (await service.call<Page<ImportResponse>>('GET', '/v1/imports?limit=1')).body.items[0];

/** Sends the beginning of a body, and then an empty line now and then: the sender is slow, not silent. */
function beginUpload(type: string, beginning: string): ClientRequest {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': type, 'content-length': 100_000 };
  const upload = request(`${service.url}/v1/imports?kind=providers`, { method: 'POST', headers });
  const trickle = setInterval(() => upload.write('\n'), 1_000);
  upload.on('error', () => {}); // cut, as it is meant to be
  upload.on('close', () => clearInterval(trickle));
  upload.write(beginning);
  return upload;
}

/** The import that an upload has begun. @param before the newest until then */
function begunAfter(before: ImportResponse | undefined): Promise<ImportResponse> {
  return until('it is being read', async () => {
    const view = await newest();
    return view && view.id !== before?.id && view.state === 'staging' ? view : undefined;
  });
}

/** Waits until an import has failed. */
const failed = (id: string) => importIs(service, id, 'failed');

describe('an upload', () => {
  const head = 'externalId,email,firstName,lastName\n';
  const part = `--x\r\ncontent-disposition: form-data; name="providers"; filename="p.csv"\r\ncontent-type: text/csv\r\n\r\n`;

  test.each([
    ['of one file', 'text/csv', `${head}p-cut,p-cut@example.org,Pia,Cut\n`],
    ['of several files', 'multipart/form-data; boundary=x', `${part}${head}p-cut,p-cut@example.org,Pia,Cut\n`],
  ])('%s that breaks off imports nothing: failed, interrupted', async (_, type, beginning) => {
    const before = await newest();
    const upload = beginUpload(type, beginning);
    const { id } = await begunAfter(before);
    upload.destroy(new Error('cut'));
    const broken = await failed(id);
    expect([broken.error?.code, broken.counts.total]).toEqual(['interrupted', 0]);
    expect((await service.call('GET', '/v1/providers/p-cut')).status).toBe(404);
  });

  test('whose connection to the database dies while its sender is slow fails alone: the service goes on', async () => {
    const before = await newest();
    // That of the upload before may not have ended yet on the server.
    const { rows } = await mirror.database.sql.query<{ now: Date }>('SELECT now()');
    const upload = beginUpload('text/csv', `${head}p-lost,p-lost@example.org,Pia,Lost\n`);
    const begun = await begunAfter(before);
    await until('its connection is cut', async () => {
      const { rowCount } = await mirror.database.sql.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'notebridge-uploads' AND state = 'idle in transaction'
           AND xact_start > $1`,
        [rows[0]?.now],
      );
      return rowCount;
    });
    upload.end('p-late,p-late@example.org,Pia,Late\n'.repeat(3_000).slice(0, 100_000));
    const broken = await failed(begun.id);
    expect([broken.error?.code, broken.counts.total]).toEqual(['interrupted', 0]);
  });

  test('that can not be read is refused with file, line and code, and nothing of it is imported', async () => {
    const latin = Buffer.concat([
      Buffer.from(`${head}p-l1,l1@example.org,Pia,Ok\np-l2,l2@example.org,Ren`),
      Buffer.from([0xe9, 0x0a]),
    ]);
    const { status, body } = await send('kind=providers', 'text/csv', latin);
    expect([status, body.type, body.file, body.line, body.code]).toEqual([
      422,
      'urn:notebridge:problem:unreadable-file',
      'text/csv',
      3,
      'not-utf8',
    ]);
    const view = await newest();
    expect([view?.state, view?.error?.code, view?.counts.total]).toEqual(['failed', 'unreadable-file', 0]);
    expect((await service.call('GET', '/v1/providers/p-l1')).status).toBe(404);
  });

  test('is one of four at most; the fifth may come again in a while, and finds a place once one is free', async () => {
    const slow = Array.from({ length: 4 }, () => beginUpload('text/csv', head));
    const states = async () =>
      (await service.call<Page<ImportResponse>>('GET', '/v1/imports?limit=5')).body.items.map(({ state }) => state);
    await until(
      'four are being read',
      async () => (await states()).filter((state) => state === 'staging').length === 4,
    );
    const body = `${head}${providerLine('p-fifth')}\n`;
    const fifth = await send('kind=providers', 'text/csv', body);
    expect([fifth.status, fifth.body.type, fifth.headers.get('retry-after')]).toEqual([
      503,
      'urn:notebridge:problem:too-many-uploads',
      '30',
    ]);
    expect((await service.call('GET', '/v1/providers')).status).toBe(200);

    for (const upload of slow) upload.destroy(new Error('cut'));
    const accepted = await until('a place is free', async () => {
      const answer = await send('kind=providers', 'text/csv', body);
      return answer.status === 202 ? answer.body : undefined;
    });
    expect((await service.importEnded(accepted.id)).counts.created).toBe(1);
  });

  test('over the limit is refused, of a type that is not read, without a file, and of an unknown kind too', async () => {
    const large = await send('kind=providers', 'text/csv', head + 'x'.repeat(1024 * 1024));
    expect(large.status).toBe(413);
    expect((await send('kind=providers', 'application/pdf', '%PDF')).status).toBe(415);
    expect((await send('kind=providers', 'application/fhir+ndjson', '{}')).status).toBe(415);
    expect((await send('kind=people', 'text/csv', head)).status).toBe(400);
    expect((await send('kind=providers', 'multipart/form-data; boundary=x', '--x--\r\n')).status).toBe(422);
    const form = new FormData();
    for (const name of ['a.csv', 'b.csv'])
      form.append('providers', new Blob([head + 'x'.repeat(600_000)], { type: 'text/csv' }), name);
    const both = await send('kind=providers', '', form);
    expect(both.status).toBe(413);
  });

  test('sent twice under one Idempotency-Key is one import; the key with another body is refused', async () => {
    const key = { 'idempotency-key': 'once' };
    const body = `${head}${providerLine('p-once')}\n`;
    const first = await send('kind=providers', 'text/csv', body, key);
    await service.importEnded(first.body.id);
    const second = await send('kind=providers', 'text/csv', body, key);
    expect([first.status, second.status, second.body.id]).toEqual([202, 202, first.body.id]);
    expect((await send('kind=providers', 'text/csv', `${body}\n`, key)).status).toBe(422);
    expect(mirror.usersOf('p-once')).toHaveLength(1);
  });
});

describe('the file of rejected rows', () => {
  test('has the original columns, line, code and hint, is safe in a spreadsheet, and comes back corrected', async () => {
    const header = 'Ward;MRN;Given Name;Family Name;E-Mail;Therapist';
    const { id } = await service.startImport('kind=clients', [
      providersCsv([providerLine('p-r')]),
      {
        name: 'clients.csv',
        type: 'text/csv',
        content: `${header}\n=1+1;c-r1;Cleo;Roe;=cmd;p-r\nB;c-r2;Ann;Lee;;p-r\n`,
      },
    ]);
    const first = await importIs(service, id, 'completed');
    expect(first.counts).toMatchObject({ total: 3, created: 2, rejected: 1 });
    const csv = await rejectedCsv(service, id);
    expect(csv.split('\r\n')[1]).toContain("'=cmd");
    expect(csv).not.toMatch(/(^|,|")=/m);
    const again = await imported(service, 'kind=clients', [
      { name: 'clients.csv', type: 'text/csv', content: csv.replace("'=cmd", 'c-r1@example.org') },
    ]);
    expect(again.counts).toMatchObject({ total: 1, created: 1 });
    expect(mirror.usersOf('c-r1')).toMatchObject([{ firstName: 'Cleo', email: 'c-r1@example.org' }]);
  });

  test('of FHIR rows comes back as text/csv of the kind fhir', async () => {
    const practitioner = { resourceType: 'Practitioner', id: 'p-f', name: [{ given: ['Pia'], family: 'F' }] };
    const patient = {
      resourceType: 'Patient',
      id: 'c-f',
      name: [{ given: ['Cy'], family: 'F' }],
      generalPractitioner: [{ reference: 'Practitioner/p-f' }],
    };
    const ndjson = [practitioner, patient].map((one) => JSON.stringify(one)).join('\n');
    const { body } = await send('kind=fhir', 'application/fhir+ndjson', ndjson);
    const first = await importIs(service, body.id, 'completed');
    expect([first.counts.rejected, first.counts.total]).toEqual([2, 2]);
    const rows = (await rejectedCsv(service, body.id)).replace(/^(provider,p-f),,/m, '$1,p-f@example.org,');
    const again = await send('kind=fhir', 'text/csv', rows);
    expect((await importIs(service, again.body.id, 'completed')).counts).toMatchObject({ total: 2, created: 2 });
    const [provider] = mirror.usersOf('p-f');
    expect(mirror.usersOf('c-f')).toMatchObject([{ providerUserIds: [provider?.userId] }]);
  });
});

test('several files of FHIR are one import, whatever their order; the external id may be an identifier', async () => {
  const npi = 'http://hl7.org/fhir/sid/us-npi';
  const mrn = 'urn:mrn';
  const person = (resourceType: string, id: string, system: string, value: string) => ({
    resourceType,
    id,
    identifier: [{ system, value }],
    name: [{ given: ['A'], family: value }],
    telecom: [{ system: 'email', value: `${value}@example.org` }],
  });
  const files: [string, object[]][] = [
    [
      'Encounter',
      [
        {
          resourceType: 'Encounter',
          status: 'finished',
          subject: { reference: 'Patient/pat-1' },
          period: { start: '2024-01-01' },
          participant: [{ individual: { reference: `Practitioner?identifier=${npi}|npi-1` } }],
        },
      ],
    ],
    [
      'CareTeam',
      [
        {
          resourceType: 'CareTeam',
          status: 'active',
          subject: { identifier: { system: mrn, value: 'mrn-1' } },
          participant: [{ member: { reference: 'PractitionerRole/role-2' } }],
        },
      ],
    ],
    ['Patient', [person('Patient', 'pat-1', mrn, 'mrn-1')]],
    [
      'PractitionerRole',
      [
        {
          resourceType: 'PractitionerRole',
          id: 'role-2',
          practitioner: { identifier: { system: npi, value: 'npi-2' } },
        },
      ],
    ],
    ['Practitioner', [person('Practitioner', 'prac-1', npi, 'npi-1'), person('Practitioner', 'prac-2', npi, 'npi-2')]],
  ];
  const { id } = await service.startImport(
    `kind=fhir&idSystem=${encodeURIComponent(npi)},${mrn}`,
    files.map(([name, resources]) => ({
      name: `${name}.ndjson`,
      type: 'application/fhir+ndjson',
      content: resources.map((one) => JSON.stringify(one)).join('\n'),
    })),
  );
  const ended = await importIs(service, id, 'completed');
  expect(ended.counts).toMatchObject({ total: 3, created: 3 });
  const idOf = (externalId: string) => mirror.usersOf(externalId)[0]?.userId;
  expect(mirror.usersOf('mrn-1')).toMatchObject([{ providerUserIds: [idOf('npi-2'), idOf('npi-1')] }]);
});

describe('progress', () => {
  test('comes by server-sent events until the end, and adds up in each of them', async () => {
    const { id } = await service.startImport('kind=clients', [
      providersCsv([providerLine('p-sse')]),
      clientsCsv(many(40, 'sse').map((one) => clientLine(one, ['p-sse']))),
    ]);
    const stream = await fetch(`${service.url}/v1/imports/${id}/events`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const events = (await stream.text()).split('\n\n').filter((event) => event.startsWith('event: progress'));
    const views = events.map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as ImportResponse);
    expect(views.at(-1)).toEqual(await importOf(service, id));
    expect(views.at(-1)?.state).toBe('completed');
    for (const view of views) expect(sumOfOutcomes(view)).toBe(view.counts.total);
  });
});

test(`${INPUTS} hostile files (SEED=${SEED}) end each in an answer below 500, with every row accounted for`, async () => {
  const random = new SeededRandom(SEED);
  const taken: { n: number; id: string }[] = [];
  for (let n = 0; n < INPUTS; n++) {
    const { query, type, bytes } = hostileFile(random);
    const { status, body } = await send(query, type, bytes);
    if (status === 202) taken.push({ n, id: body.id });
    else expect([n, status, body.type]).toEqual([n, 422, 'urn:notebridge:problem:unreadable-file']);
  }
  let rows = 0;
  for (const { n, id } of taken) {
    const { state, counts } = await service.importEnded(id);
    const sum = sumOfOutcomes({ counts });
    expect([n, state, sum, counts.pending]).toEqual([n, 'completed', counts.total, 0]);
    expect((await rowsOf(service, id)).length).toBe(counts.total);
    if (counts.rejected > 0) expect((await rejectedCsv(service, id)).length).toBeGreaterThan(20);
    rows += counts.total;
  }
  expect(taken.length).toBeGreaterThan(INPUTS / 4);
  expect(rows).toBeGreaterThan(INPUTS / 2);
});

const CSV =
  'externalId,email,firstName,lastName,providers\nx-1,x1@example.org,A,B,p-h\nx-2,,"C\n""D""",E,p-h|p-none\nx-3,no,F,G,\n';
const PEOPLE = [
  '{"externalId":"y-1","firstName":"A","lastName":"B","providers":["p-h"]}',
  '{"externalId":"y-2","email":1}',
  '{"externalId":"y-3","firstName":"A","lastName":"B","room":2}',
].join('\n');
const FHIR = [
  '{"resourceType":"Practitioner","id":"z-1","name":[{"family":"A","given":["B"]}],"telecom":[{"system":"email","value":"z1@example.org"}]}',
  '{"resourceType":"Patient","id":"z-2","name":[{"text":"A B"}],"generalPractitioner":[{"reference":"Practitioner/z-1"}]}',
  '{"resourceType":"Encounter","status":"finished","subject":{"reference":"Patient/z-2"},"period":{"start":"0001-01-01"},"participant":[{"individual":{"reference":"Practitioner/z-1"}}]}',
].join('\n');
const FILES = [
  { query: 'kind=clients', type: 'text/csv', text: CSV },
  { query: 'kind=providers', type: 'text/csv', text: CSV.replaceAll(',', ';') },
  { query: 'kind=clients&defaultProvider=p-h', type: 'application/x-ndjson', text: PEOPLE },
  { query: 'kind=fhir', type: 'application/fhir+ndjson', text: FHIR },
  {
    query: 'kind=fhir',
    type: 'application/fhir+json',
    text: `{"resourceType":"Bundle","entry":[${FHIR.split('\n')
      .map((resource) => `{"resource":${resource}}`)
      .join(',')}]}`,
  },
];
const TOKENS = [
  '"',
  '""',
  ',',
  ';',
  '\t',
  '|',
  '\n',
  '\r\n',
  '\\u0000',
  '\u0000',
  '\ufeff',
  '\\ud800',
  '\\',
  '{',
  '}',
  '[',
  ']',
  'null',
  '9999-12-31',
  '0000',
  '-1e999',
  '😀',
  "'",
  '=',
  '{"toString":1}',
  '"__proto__":1,',
  '"\\u0000":1,',
  'line,code,hint',
];

/** A valid file in which a few things were changed. */
function hostileFile(random: SeededRandom): { query: string; type: string; bytes: Buffer } {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random.fraction() * items.length)] as T;
  const { query, type, text } = pick(FILES);
  let bytes = Buffer.from(text);
  for (let edits = Math.floor(random.fraction() * 4); edits >= 0; edits--) {
    const at = Math.floor(random.fraction() * bytes.length);
    const raw =
      random.fraction() < 0.15 ? Buffer.from([Math.floor(random.fraction() * 256)]) : Buffer.from(pick(TOKENS));
    bytes = Buffer.concat([bytes.subarray(0, at), raw, bytes.subarray(at + pick([0, 0, 1, 2, 30]))]);
  }
  return { query, type, bytes };
}
