import type { Env } from '../config/env.js';
import type { StopTracing } from './deliver-spans.js';

type TracingEnv = Pick<Env, 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_EXPORTER_OTLP_HEADERS'>;

/**
 * Has the spans of this process delivered to OTEL_EXPORTER_OTLP_ENDPOINT. Without one nothing of the SDK is loaded.
 *
 * @param warn told once when they can not be delivered
 */
export async function startTracing(env: TracingEnv, warn: (sentence: string) => void): Promise<StopTracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = env;
  if (endpoint === undefined) return async () => undefined;
  const { deliverSpans } = await import('./deliver-spans.js');
  // OTLP exporter: the path of a signal is appended to the endpoint.
  return deliverSpans(`${endpoint.replace(/(?<!\/)\/+$/, '')}/v1/traces`, headers, warn);
}
