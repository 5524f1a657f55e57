import { validationPipe } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { ClientProvidersRequest, ClientRequest, ProviderRequest } from './people.dto.js';

type Dto = typeof ProviderRequest | typeof ClientRequest | typeof ClientProvidersRequest;

const provider = { email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' };
const client = { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1', 'p-2'] };

/** The pointer of the 400 for a body; undefined if it is accepted. */
async function rejectedAt(metatype: Dto, body: unknown): Promise<string | undefined> {
  try {
    await validationPipe().transform(body, { type: 'body', metatype });
    return undefined;
  } catch (refusal) {
    if (!(refusal instanceof Problem) || refusal.status !== 400) throw refusal;
    return refusal.more.pointer;
  }
}

/** Values that break each rule of a required field. */
const nameFaults = [undefined, null, 7, {}, '', '  ', 'a\nb', 'a'.repeat(201)];
const emailFaults = ['ada', 'ada@', '@clinic.example', 7, {}];

describe('create provider (spec, User management)', () => {
  it('accepts email, firstName and lastName', async () => {
    expect(await rejectedAt(ProviderRequest, provider)).toBeUndefined();
  });

  it.each(['firstName', 'lastName'])('requires %s to be a name', async (field) => {
    for (const value of nameFaults)
      expect(await rejectedAt(ProviderRequest, { ...provider, [field]: value })).toBe(`/${field}`);
  });

  it('requires email to be an address', async () => {
    for (const email of [undefined, null, '', ...emailFaults]) {
      expect(await rejectedAt(ProviderRequest, { ...provider, email })).toBe('/email');
    }
  });

  it.each(['partnerUserId', 'therapistUserId', 'providers'])(
    'rejects %s, which the EHR must not send',
    async (field) => {
      expect(await rejectedAt(ProviderRequest, { ...provider, [field]: 'x' })).toBe(`/${field}`);
    },
  );
});

describe('create client (spec, User management)', () => {
  it('accepts firstName, lastName and a provider', async () => {
    expect(await rejectedAt(ClientRequest, client)).toBeUndefined();
  });

  it.each(['firstName', 'lastName'])('requires %s to be a name', async (field) => {
    for (const value of nameFaults)
      expect(await rejectedAt(ClientRequest, { ...client, [field]: value })).toBe(`/${field}`);
  });

  it('accepts a missing email, otherwise requires an address', async () => {
    for (const email of ['noor@mail.example', null, '', ' ']) {
      expect(await rejectedAt(ClientRequest, { ...client, email })).toBeUndefined();
    }
    for (const email of emailFaults) expect(await rejectedAt(ClientRequest, { ...client, email })).toBe('/email');
  });

  it.each(['partnerUserId', 'therapistUserId'])('rejects %s, which the EHR must not send', async (field) => {
    expect(await rejectedAt(ClientRequest, { ...client, [field]: 'x' })).toBe(`/${field}`);
  });
});

it.each<[string, Dto, object]>([
  ['a client', ClientRequest, client],
  ['a replaced list', ClientProvidersRequest, {}],
])('the providers of %s must be a list of at least one id, without duplicates', async (_name, dto, rest) => {
  expect(await rejectedAt(dto, { ...rest, providers: ['p-1'] })).toBeUndefined();
  for (const providers of [undefined, null, [], 'p-1', {}, [7], [' p-1'], ['p-1', 'p-1']]) {
    expect(await rejectedAt(dto, { ...rest, providers })).toBe('/providers');
  }
});
