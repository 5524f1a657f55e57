/** What is wrong with a compliance job, and what to do, by its code. */
export const COMPLIANCE_CODES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission. Look for the job there, then resolve with "link" or "abandon".',
  'not-submitted': 'The upload ended before anything was submitted. Submit the files again.',
  'platform-rejected':
    'The platform rejected this job. See platformMessage, if the platform sent one and this key may read it.',
  abandoned: 'An operator abandoned this job. To have the files checked, submit them again.',
  'result-unreadable':
    'The result could not be read in time, so lookups have ended. Correct what /health/ready reports, then resolve with "link" to look it up again, or with "abandon".',
  'no-result':
    'The platform reported the end of this job, but its result cannot be fetched. GET /v1/capabilities names the missing settings of compliance-result.',
  'unreadable-answer':
    'The answer about this job cannot be read; the lookup is retried automatically. The check platform in /health/ready names the pointer and what it found.',
  'maybe-gone':
    'The platform answered 404 to the lookup of this job: it does not know the job, or the URL is wrong. The lookup is retried automatically; resolve with "link" or "abandon" if the job id is wrong.',
  gone: 'The platform does not know this job; the lookup is retried automatically. If it stays unknown, resolve with "link" to another job, or "abandon".',
};

/** The same for every other code. */
export const LOOKUP_FAILED = 'The result could not be fetched from the platform; the lookup is retried automatically.';
