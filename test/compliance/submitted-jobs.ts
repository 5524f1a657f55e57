import type { CallOptions } from '../../harness/world/request.js';
import type { World } from '../../harness/world/world.js';
import type { ComplianceJob } from '../../simulator/compliance/compliance-job.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import type { ComplianceJobResponse } from '../../src/compliance/compliance.dto.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { UploadAddressResponse } from '../../src/platform/clients/upload-address.dto.js';

export const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';
export const SUBMIT = 'submitComplianceJob';

/** The service's answer: a job, or a problem. */
export type JobAnswer = ComplianceJobResponse & { type: string; pointer?: string };

export type Part = [name: string, content: string, fileName?: string];

export const file = (name = 'files', content = PDF): Part => [name, content, 'Jane Roe.pdf'];

/** Compliance jobs, which the platform ends only when a test ends them. */
export function submittedJobs(world: World) {
  const onPlatform = () => [...world.platform.simulator.state.complianceJobs.values()];
  const platformJob = (jobId: string | null): ComplianceJob => {
    const job = onPlatform().find((each) => each.jobId === jobId);
    if (!job) throw new Error('The platform has no such job.');
    return job;
  };
  const post = (parts: Part[] = [file()], options: CallOptions = {}) => {
    const form = new FormData();
    for (const [name, content, fileName] of parts) {
      if (fileName === undefined) form.append(name, content);
      else form.append(name, new Blob([content], { type: 'application/pdf' }), fileName);
    }
    return world.call<JobAnswer>('POST', '/v1/compliance/jobs', { body: form, ...options });
  };
  const tell = (eventType: 'COMPLIANCE_JOB_COMPLETED' | 'COMPLIANCE_JOB_FAILED', jobId: string | null) =>
    world.platform.simulator.state.deliveries.send({ eventType, payload: { jobId: jobId ?? '' } });
  const show = async (id: string) => (await world.call<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${id}`)).body;
  return {
    onPlatform,
    platformJob,
    post,
    tell,
    submitJson: (body: unknown, options: CallOptions = {}) =>
      world.call<JobAnswer>('POST', '/v1/compliance/jobs', { body, ...options }),
    uploadUrl: async () =>
      (await world.call<UploadAddressResponse>('POST', '/v1/compliance/upload-url', { body: {} })).body,
    show,
    list: async (query = '') =>
      (await world.call<Page<ComplianceJobResponse>>('GET', `/v1/compliance/jobs?${query}`)).body,
    resolve: (id: string, body: object, options: CallOptions = {}) =>
      world.call<JobAnswer>('POST', `/v1/compliance/jobs/${id}/resolve`, { body, ...options }),
    /** Ends a job on the platform, which sends an event, and settles the world. */
    async finish(jobId: string | null, willFail = false): Promise<ComplianceJob> {
      const job = platformJob(jobId);
      job.willFail = willFail;
      finishJob(world.platform.simulator.state, job);
      await world.settle();
      return job;
    },
    /** The feed's events of compliance jobs. */
    async events() {
      const { body } = await world.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200');
      return body.items
        .filter(({ type }) => type.startsWith('compliance.'))
        .map(({ type, subject, data }) => ({ type, id: subject.replace('compliance/jobs/', ''), data }));
    },
    /** A submission whose answer was lost, and its job on the platform. */
    async unknownJob(idempotencyKey?: string): Promise<[ComplianceJobResponse, ComplianceJob]> {
      world.platform.injectFault({ operation: SUBMIT, kind: 'commit-then-cut' });
      const { status, body } = await post([file()], { idempotencyKey });
      expect([status, body.state]).toEqual([504, 'Unknown']);
      return [await show(body.id), platformJob(onPlatform().at(-1)?.jobId ?? null)];
    },
  };
}
