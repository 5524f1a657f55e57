import type { PlatformRoute } from '../gate/platform-route.js';
import { notFound } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { type ComplianceJob, complianceView, readComplianceJob } from './compliance-job.js';

/** Compliance jobs: they run on a timer, announce their end by webhook, and can be read at any time. */
export function complianceRoutes(state: SimulatorState): PlatformRoute[] {
  return [
    {
      operation: 'submitComplianceJob',
      method: 'POST',
      path: '/compliance/job',
      handle: (call) => {
        const { files, criteria, allPdf } = readComplianceJob(call.body, state.uploads);
        const willFail = !allPdf || state.random.chance(state.settings.complianceFailureRate);
        const job: ComplianceJob = { jobId: state.random.uuid(), files, criteria, status: 'processing', willFail };
        state.complianceJobs.set(job.jobId, job);
        if (state.settings.stepMs > 0) state.timers.later(state.settings.stepMs, () => finishJob(state, job));
        const body = { jobId: job.jobId };
        return { status: 201, body };
      },
    },
    {
      operation: 'getComplianceJob',
      method: 'GET',
      path: '/compliance/job/:jobId',
      handle: ({ params }) => {
        const job = state.complianceJobs.get(params.jobId ?? '');
        if (!job) throw notFound('Compliance job');
        return { status: 200, body: complianceView(job) };
      },
    },
  ];
}

/** Ends a job once; its webhook contains only the job's id (spec, Processing API events). */
export function finishJob(state: SimulatorState, job: ComplianceJob): void {
  if (job.status !== 'processing') return;
  job.status = job.willFail ? 'failed' : 'completed';
  state.deliveries.send({
    eventType: job.willFail ? 'COMPLIANCE_JOB_FAILED' : 'COMPLIANCE_JOB_COMPLETED',
    payload: { jobId: job.jobId },
  });
}
