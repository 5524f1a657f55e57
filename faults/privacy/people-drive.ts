import { canary } from '../../harness/canaries.js';
import type { PrivateEhr } from './ehr.js';

const WAIT = { prefer: 'wait=30' };

/** A person with only private values. */
export const person = (name: string) => ({
  firstName: canary(`First${name}`),
  lastName: canary(`Last${name}`),
  email: `${canary(`Mail${name}`)}@clinic.example`,
});

/** People by single requests: created, changed, searched, rejected and deleted. */
export async function drivePeople(ehr: PrivateEhr): Promise<void> {
  for (const n of [1, 2, 3]) await ehr.get('PUT', `/v1/providers/p-${n}`, { body: person(`P${n}`), headers: WAIT });
  for (const n of [1, 2, 3]) {
    const body = { ...person(`C${n}`), providers: ['p-1'] };
    await ehr.get('PUT', `/v1/clients/c-${n}`, { body, headers: WAIT });
  }
  await ehr.get('PUT', '/v1/clients/c-2', { body: { ...person('Changed'), providers: ['p-2'] }, headers: WAIT });
  await ehr.get('PUT', '/v1/clients/c-2/providers', { body: { providers: ['p-2', 'p-1'] }, headers: WAIT });
  await ehr.ask('PUT', '/v1/clients/c-7', {
    body: { ...person('Twin'), email: person('C1').email, providers: ['p-1'] },
  });
  await ehr.get('DELETE', '/v1/clients/c-3', { headers: WAIT });
  for (const path of ['/v1/clients/c-1', '/v1/providers/p-1', '/v1/clients', '/v1/providers']) {
    await ehr.get('GET', path);
  }
  await ehr.get('POST', '/v1/people/search', { body: { email: person('C1').email } });
  await ehr.get('POST', '/v1/people/search', { body: { email: person('Nobody').email } });
  await ehr.get('POST', '/v1/search', { body: { text: person('C1').email } });
  await ehr.get('POST', '/v1/people/trace', { body: { kind: 'client', externalId: 'c-1' } });
  await refusedPeople(ehr);
}

/** Invalid bodies, paths, queries and headers, each with a private value. */
async function refusedPeople(ehr: PrivateEhr): Promise<void> {
  const word = canary('Wrong');
  const spoilt = [
    { ...person('Spoilt'), phone: canary('Phone') },
    { ...person('Spoilt'), email: canary('NoMail') },
    { ...person('Spoilt'), firstName: [canary('List')] },
    { ...person('Spoilt'), lastName: `${canary('Nul')}\0` },
    { ...person('Spoilt'), lastName: canary('Long').repeat(20) },
    [person('InList')],
    canary('Text'),
  ];
  for (const body of spoilt) {
    const json = { body: JSON.stringify(body), type: 'application/json' };
    await ehr.ask('PUT', '/v1/providers/p-9', json);
    await ehr.ask('PUT', '/v1/clients/c-9', json);
    await ehr.ask('POST', '/v1/people/search', json);
    await ehr.ask('POST', '/v1/api-keys', json);
  }
  for (const type of [
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
  ]) {
    await ehr.ask('PUT', '/v1/clients/c-9', { body: `{"firstName": "${canary('Broken')}", `, type });
  }
  for (const name of [word, person('InPath').email, `${word}%00`, `${word}%zz`]) {
    for (const path of [
      `/v1/clients/${name}`,
      `/v1/providers/${name}`,
      `/v1/sessions/${name}`,
      `/v1/sessions/${name}/notes`,
      `/v1/imports/${name}`,
      `/v1/imports/${name}/rejected.csv`,
      `/v1/webhook-deliveries/${name}`,
      `/v1/compliance/jobs/${name}`,
      `/v1/processing-sessions/${name}`,
      `/${name}`,
    ]) {
      await ehr.ask('GET', path);
    }
    await ehr.ask('DELETE', `/v1/clients/${name}`);
    await ehr.ask('DELETE', `/v1/api-keys/${name}`);
    await ehr.ask('PATCH', `/v1/sessions/${name}`, { body: { externalTreatmentPlan: canary('Plan') } });
    await ehr.ask('POST', `/v1/clients/${name}/resolve`, { body: { action: 'retry' } });
    for (const query of [`state=${name}`, `cursor=${name}`, `limit=${name}`]) {
      await ehr.ask('GET', `/v1/clients?${query}`);
    }
    for (const query of [`provider=${name}`, `client=${name}`, `appointment=${name}`, `updatedSince=${name}`]) {
      await ehr.ask('GET', `/v1/sessions?${query}`);
    }
    await ehr.ask('GET', `/v1/audit?keyId=${name}`);
    await ehr.ask('GET', `/v1/events?after=${name}`);
  }
  const base64 = Buffer.from(JSON.stringify([word])).toString('base64url');
  await ehr.ask('GET', `/v1/clients?cursor=${base64}`);
  await ehr.ask('GET', '/v1/clients', { key: canary('WrongKey') });
  await ehr.ask('GET', '/v1/clients', { key: `nb_${canary('WrongKey')}${'x'.repeat(40)}` });
  for (const header of ['prefer', 'accept', 'cookie', 'user-agent', 'referer', 'x-forwarded-for', 'forwarded']) {
    await ehr.ask('GET', '/v1/events', { headers: { [header]: canary('Header') } });
  }
  await ehr.ask('POST', '/v1/recordings', {
    body: canary('Sound'),
    type: 'audio/wav',
    headers: { 'idempotency-key': canary('Key') },
  });
}
