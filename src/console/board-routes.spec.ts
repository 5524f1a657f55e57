import { boundedQuery, parametersOf } from './board-routes.js';

const JOB = '/api/queues/:queueName/:jobId';

test.each([
  ['queues/imports/12', { queueName: 'imports', jobId: '12' }],
  ['queues/imports', undefined],
  ['queues/imports/12/logs', undefined],
  ['jobs/imports/12', undefined],
  ['queues/imports/meta', undefined],
  ['queues/../12', undefined],
  ['', undefined],
])('of %j the parameters are %j', (path, parameters) => {
  expect(parametersOf(JOB, path)).toEqual(parameters);
});

test('a list is asked for within bounds, whatever the query says', () => {
  expect(boundedQuery({ activeQueue: 'imports', status: 'failed', page: '2', jobsPerPage: '20' })).toEqual({
    activeQueue: 'imports',
    status: 'failed',
    page: '2',
    jobsPerPage: '20',
  });
  expect(boundedQuery({ page: '1e300', jobsPerPage: '99999' })).toEqual({ page: '1000', jobsPerPage: '50' });
  expect(boundedQuery({ activeQueue: '%', status: ['failed', 'active'], page: '-1', jobsPerPage: 'x' })).toEqual({});
});
