import { validationPipe } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { ClientProvidersRequest, ClientRequest, ProviderRequest } from './people.dto.js';

type Dto = typeof ProviderRequest | typeof ClientRequest | typeof ClientProvidersRequest;

const provider = { email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' };
const client = { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1', 'p-2'] };

/** Where a body is refused with 400; undefined when it is taken. */
async function refusedAt(metatype: Dto, body: unknown): Promise<string | undefined> {
  try {
    await validationPipe().transform(body, { type: 'body', metatype });
    return undefined;
  } catch (refusal) {
    if (!(refusal instanceof Problem) || refusal.status !== 400) throw refusal;
    return refusal.more.pointer;
  }
}

/** Every rule that a required field has, each as a change of an acceptable body. */
const nameFaults = [undefined, null, 7, {}, '', '  ', 'a\nb', 'a'.repeat(201)];
const emailFaults = ['ada', 'ada@', '@clinic.example', 7, {}];

describe('create provider (spec, User management)', () => {
  it('email, firstName and lastName are enough', async () => {
    expect(await refusedAt(ProviderRequest, provider)).toBeUndefined();
  });

  it.each(['firstName', 'lastName'])('%s is required and is a name', async (field) => {
    for (const value of nameFaults)
      expect(await refusedAt(ProviderRequest, { ...provider, [field]: value })).toBe(`/${field}`);
  });

  it('email is required and is an address', async () => {
    for (const email of [undefined, null, '', ...emailFaults]) {
      expect(await refusedAt(ProviderRequest, { ...provider, email })).toBe('/email');
    }
  });

  it.each(['partnerUserId', 'therapistUserId', 'providers'])('%s is not the EHR’s to send', async (field) => {
    expect(await refusedAt(ProviderRequest, { ...provider, [field]: 'x' })).toBe(`/${field}`);
  });
});

describe('create client (spec, User management)', () => {
  it('firstName, lastName and a provider are enough', async () => {
    expect(await refusedAt(ClientRequest, client)).toBeUndefined();
  });

  it.each(['firstName', 'lastName'])('%s is required and is a name', async (field) => {
    for (const value of nameFaults)
      expect(await refusedAt(ClientRequest, { ...client, [field]: value })).toBe(`/${field}`);
  });

  it('an email may be given, and is then an address', async () => {
    for (const email of ['noor@mail.example', null, '', ' ']) {
      expect(await refusedAt(ClientRequest, { ...client, email })).toBeUndefined();
    }
    for (const email of emailFaults) expect(await refusedAt(ClientRequest, { ...client, email })).toBe('/email');
  });

  it.each(['partnerUserId', 'therapistUserId'])('%s is not the EHR’s to send', async (field) => {
    expect(await refusedAt(ClientRequest, { ...client, [field]: 'x' })).toBe(`/${field}`);
  });
});

it.each<[string, Dto, object]>([
  ['a client', ClientRequest, client],
  ['a replaced list', ClientProvidersRequest, {}],
])('the providers of %s are a list that names at least one, each once', async (_name, dto, rest) => {
  expect(await refusedAt(dto, { ...rest, providers: ['p-1'] })).toBeUndefined();
  for (const providers of [undefined, null, [], 'p-1', {}, [7], [' p-1'], ['p-1', 'p-1']]) {
    expect(await refusedAt(dto, { ...rest, providers })).toBe('/providers');
  }
});
