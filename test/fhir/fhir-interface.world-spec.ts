import { fhirFaults } from '../../harness/fhir-faults.js';
import { request } from '../../harness/world/request.js';
import { ADMIN_KEY } from '../support/app.js';
import { useWorld } from '../world/use-world.js';
import { type Bundle, linkOf, type Outcome, useFhir } from './fhir-calls.js';

const world = useWorld();
const { fhir, page, fault, keyWith } = useFhir(world);
const SEARCH = '/fhir/DocumentReference';

describe('/fhir/metadata', () => {
  interface Capabilities {
    resourceType: string;
    fhirVersion: string;
    implementation: { url: string };
    rest: { resource: { type: string; interaction: { code: string }[]; searchParam: { name: string }[] }[] }[];
  }

  it('is a CapabilityStatement of what is built, without a key', async () => {
    const { status, body } = await fhir<Capabilities>('/fhir/metadata', { headers: { authorization: '' } });
    expect([status, body.resourceType, body.fhirVersion]).toEqual([200, 'CapabilityStatement', '4.0.1']);
    expect(body.implementation.url).toBe(`${world.url}/fhir`);
    const [resource, ...more] = body.rest.flatMap((rest) => rest.resource);
    expect([resource?.type, more]).toEqual(['DocumentReference', []]);
    expect(resource?.interaction.map(({ code }) => code)).toEqual(['read', 'search-type']);
    expect(resource?.searchParam.map(({ name }) => name)).toEqual(['patient', 'date', '_lastUpdated', '_id']);
    expect(resource).toMatchObject({ referencePolicy: ['logical'], conditionalRead: 'not-supported' });
  });

  it('has the public URL, as all links do, if one is set', async () => {
    await world.restart({ PUBLIC_URL: 'https://notes.clinic.example' });
    const { body } = await fhir<Capabilities>('/fhir/metadata');
    expect(body.implementation.url).toBe('https://notes.clinic.example/fhir');
    expect(linkOf(await page('date=2026'), 'self')).toBe(
      'https://notes.clinic.example/fhir/DocumentReference?date=2026',
    );
  });
});

describe('errors below /fhir are OperationOutcomes', () => {
  it.each<
    [name: string, path: string, options: { accept?: string; headers?: Record<string, string> }, expected: unknown[]]
  >([
    ['no key', SEARCH, { headers: { authorization: '' } }, [401, 'login', 'unauthenticated']],
    ['a wrong key', SEARCH, { headers: { authorization: 'Bearer x' } }, [401, 'login', 'unauthenticated']],
    ['an unknown route', '/fhir/Patient', {}, [404, 'not-found', 'not-found']],
    ['the folder itself', '/fhir', {}, [404, 'not-found', 'not-found']],
    ['a malformed URL', '/fhir/DocumentReference/%zz', {}, [400, 'invalid', 'bad-url']],
    ['a wrong date', `${SEARCH}?date=soon`, {}, [400, 'value', 'bad-search']],
    ['a modifier', `${SEARCH}?date:missing=true`, {}, [400, 'not-supported', 'search-not-supported']],
    ['an encounter', `${SEARCH}?encounter.identifier=a-1`, {}, [400, 'not-supported', 'search-not-supported']],
    ['an empty identifier', `${SEARCH}?patient.identifier=`, {}, [400, 'value', 'bad-search']],
    ['an empty patient', `${SEARCH}?patient=`, {}, [400, 'not-supported', 'search-not-supported']],
    ['a form in brackets', `${SEARCH}?patient[identifier]=c-1`, {}, [400, 'not-supported', 'search-not-supported']],
    ['an unknown parameter', `${SEARCH}?a=1`, {}, [400, 'not-supported', 'search-not-supported']],
    ['a page without notes', `${SEARCH}?_count=0`, {}, [400, 'value', 'bad-search']],
    ['a wrong cursor', `${SEARCH}?_cursor=x`, {}, [400, 'invalid', 'bad-cursor']],
    ['a NUL', `${SEARCH}?patient.identifier=%00`, {}, [400, 'invalid', 'bad-value']],
    ['XML', SEARCH, { accept: 'application/fhir+xml' }, [406, 'not-supported', 'not-acceptable']],
    ['XML or JSON', `${SEARCH}?_format=json&_format=xml`, {}, [406, 'not-supported', 'not-acceptable']],
    ['XML by _format', '/fhir/metadata?_format=xml', {}, [406, 'not-supported', 'not-acceptable']],
    [
      'an unknown parameter with handling=lenient',
      `${SEARCH}?a=1`,
      { headers: { prefer: 'respond-async, handling=lenient' } },
      [400, 'not-supported', 'search-not-supported'],
    ],
  ])('%s', async (_, path, options, expected) => {
    expect(await fault(path, options)).toEqual(expected);
  });

  it.each(['author', 'status', 'period', 'type', 'category', 'related', 'patient:Patient.name'])(
    'a search by %s, which is named',
    async (name) => {
      const { status, body } = await fhir<Outcome>(`${SEARCH}?${name}=x`);
      expect([status, body.issue[0]?.diagnostics]).toEqual([400, expect.stringContaining(`parameter: ${name}`)]);
    },
  );

  it('a wrong method', async () => {
    const { status, body } = await fhir<Outcome>(SEARCH, {}, 'DELETE');
    expect([status, body.issue[0]?.code]).toEqual([404, 'not-found']);
  });

  it('a key without the scope, with the scope that it lacks', async () => {
    const { status, body } = await fhir<Outcome>(SEARCH, { key: await keyWith('sessions:read') });
    expect([status, body.issue[0]?.code, body.issue[0]?.diagnostics]).toEqual([
      ...[403, 'forbidden', expect.stringContaining('scope: notes:read')],
    ]);
  });

  it('too many requests in a second, with Retry-After', async () => {
    const service = await world.startAnother({ KEY_REQUESTS_PER_SECOND: '1' });
    const ask = () => request<Outcome>(`${service.url}${SEARCH}`, 'GET', { key: ADMIN_KEY });
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    const refused = answers.find(({ status }) => status === 429);
    expect(fhirFaults(refused?.body ?? {})).toEqual([]);
    expect([refused?.body.issue[0]?.code, refused?.headers.get('retry-after')]).toEqual([
      'throttled',
      expect.any(String),
    ]);
  });

  it('a fault of the service, with nothing but a reference to the log', async () => {
    await world.sql('ALTER TABLE session_documents RENAME TO moved');
    const answer = fhir<Outcome>(SEARCH);
    await answer.catch(() => undefined);
    await world.sql('ALTER TABLE moved RENAME TO session_documents');
    const { status, body, text } = await answer;
    expect([status, body.issue[0]?.severity, body.issue[0]?.code]).toEqual([500, 'fatal', 'exception']);
    expect(body.issue[0]?.diagnostics).toMatch(/^An unexpected error occurred\. .+ \(reference: [\da-f-]{36}\)$/);
    expect(text).not.toMatch(/session_documents|at /);
  });

  it('only there: other errors stay problem details', async () => {
    for (const path of ['/v1/none', '/fhirs'])
      expect((await world.call('GET', path)).headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });
});

it.each(['application/fhir+json', 'application/fhir%2Bjson%3B%20fhirVersion=4.0', 'application/json;charset=utf-8'])(
  '_format=%s overrides Accept, also with a + that is not escaped, and with parameters',
  async (format) => {
    const { status } = await fhir<Bundle>(`${SEARCH}?_format=${format}`, { accept: 'text/html' });
    expect(status).toBe(200);
  },
);

it.each(['application/json', '*/*', 'application/fhir+json;fhirVersion=4.0', undefined])(
  'a search that accepts %s is answered',
  async (accept) => {
    const { status, body } = await fhir<Bundle>(SEARCH, { accept });
    expect([status, body.entry]).toEqual([200, undefined]);
  },
);
