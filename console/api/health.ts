import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { NotebridgeError } from '../../client/notebridge-error.js';
import type { Schemas } from './client.js';
import { usePolling } from './queries.js';

type Health = Pick<Schemas['HealthReportResponse'], 'status' | 'causes'>;

/** How often to read health. The overview brings changes within seconds, while PostgreSQL answers. */
const POLL_INTERVAL_MS = 10_000;

const UNREACHABLE = 'The service cannot be reached. Check that a process with the role api is running.';

/** Public, because a sign-in needs a healthy service, too. An unhealthy one answers 503 with the same body. */
async function readHealth(): Promise<Health> {
  const answer = await fetch('/health/ready').catch(() => undefined);
  const health: unknown = await answer?.json().catch(() => undefined);
  if (Array.isArray((health as Health | undefined)?.causes)) return health as Health;
  throw new NotebridgeError('no-answer', 0, UNREACHABLE);
}

export function useHealth(): UseQueryResult<Health> {
  const refetchInterval = usePolling(POLL_INTERVAL_MS);
  return useQuery({ queryKey: ['health'], queryFn: readHealth, refetchInterval, retry: false });
}
