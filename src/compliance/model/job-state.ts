import type { ProcessingEventType } from '../../platform/contract/wire-types.js';

/** How a job of the platform ended, as its events tell. */
export type JobEnd = 'Completed' | 'Failed';

/** The events that end a job (spec, Processing API events). */
export const COMPLIANCE_EVENT_TYPES = ['COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED'] as const;
export const SMART_EDIT_EVENT_TYPES = ['SMART_EDIT_JOB_COMPLETED', 'SMART_EDIT_JOB_FAILED'] as const;

export function jobEndOf(eventType: ProcessingEventType): JobEnd {
  return eventType.endsWith('_COMPLETED') ? 'Completed' : 'Failed';
}

/** The id that a job's event names, under `payload` as the spec shows it. @throws {Error} when it names none */
export function jobIdOf(body: Record<string, unknown>): string {
  const { payload } = body;
  const jobId = typeof payload === 'object' && payload !== null && 'jobId' in payload ? payload.jobId : undefined;
  if (typeof jobId !== 'string' || jobId === '') throw new Error('A job event names no payload.jobId.');
  return jobId;
}
