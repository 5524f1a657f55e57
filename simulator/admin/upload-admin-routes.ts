import type { FastifyInstance } from 'fastify';
import { PROCESSING_EVENT_TYPES } from '../../src/platform/contract/wire-types.js';
import { objectOf } from '../body-fields.js';
import { finishJob } from '../compliance/compliance-routes.js';
import { invalid, notFound } from '../refusal.js';
import type { SimulatorState } from '../state.js';

/** Lists uploads, and advances compliance jobs. */
export function uploadAdminRoutes(app: FastifyInstance, state: SimulatorState): void {
  app.get('/uploads', async () => ({
    total: state.uploads.list().length,
    uploads: state.uploads.list().map(({ token: _token, ...shown }) => shown),
  }));

  app.get('/compliance-jobs', async () => ({
    total: state.complianceJobs.size,
    jobs: [...state.complianceJobs.values()],
  }));

  app.post<{ Params: { jobId: string } }>('/compliance-jobs/:jobId/advance', async ({ params, body }) => {
    const job = state.complianceJobs.get(params.jobId);
    if (!job) throw notFound('Compliance job');
    const { willFail } = objectOf(body ?? {});
    if (typeof willFail === 'boolean') job.willFail = willFail;
    finishJob(state, job);
    return { jobId: job.jobId, status: job.status };
  });

  // Smart edits happen in the platform's own application; the partner only gets their events.
  app.post('/smart-edits', async (request, reply) => {
    const { eventType = 'SMART_EDIT_JOB_COMPLETED' } = objectOf(request.body ?? {});
    const known = PROCESSING_EVENT_TYPES.find((type) => type === eventType);
    if (known !== 'SMART_EDIT_JOB_COMPLETED' && known !== 'SMART_EDIT_JOB_FAILED') {
      throw invalid('eventType must be SMART_EDIT_JOB_COMPLETED or SMART_EDIT_JOB_FAILED.');
    }
    const jobId = state.random.uuid();
    state.deliveries.send({ eventType: known, payload: { jobId } });
    return reply.code(202).send({ jobId });
  });
}
