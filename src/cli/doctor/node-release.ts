import { type Finding, ok, unknown } from './finding.js';

/** Last day of support for each major release of Node: the schedule of github.com/nodejs/Release as of 2026-11-27. */
export const SUPPORT_ENDS: Record<string, string> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
};

/** The release of the image in Dockerfile. */
export const RECOMMENDED = '24';

/** A warning and not a fault, because notebridge works with it. @param version such as 24.11.1 @param date as ISO 8601 */
export function nodeFinding(version: string, date: string): Finding {
  const end = SUPPORT_ENDS[version.split('.', 1)[0] ?? ''];
  if (end === undefined) return ok(`Node ${version}`);
  if (date.slice(0, 10) <= end) return ok(`Node ${version}, which is supported until ${end}`);
  const advice = `Install Node ${RECOMMENDED}, which is supported until ${SUPPORT_ENDS[RECOMMENDED]}.`;
  return unknown(`Node ${version} has had no security fixes since ${end}`, advice);
}
