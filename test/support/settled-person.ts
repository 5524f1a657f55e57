import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';

/** States in which the service continues automatically. */
const AUTOMATIC_STATES = ['pending', 'waiting', 'deleting'];

/**
 * Waits until a person is synced or needs an operator. A slow machine may take longer than `Prefer: wait` allows.
 *
 * @param path such as `clients/c-1`
 */
export const settledPerson = (service: Pick<Service, 'call'>, path: string): Promise<PersonResponse> =>
  until(`${path} is settled`, async () => {
    const { body } = await service.call('GET', `/v1/${path}`, { wait: 60 });
    return AUTOMATIC_STATES.includes(body.sync.state) ? undefined : body;
  });
