import type { Env } from '../config/env.js';
import type { StopTracing } from './deliver-spans.js';

/**
 * Delivers the spans of this process to OTEL_EXPORTER_OTLP_ENDPOINT. Without it, the SDK is not loaded.
 *
 * @param warn called once if they cannot be delivered
 */
export async function startTracing(env: Env, warn: (sentence: string) => void): Promise<StopTracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = env;
  if (endpoint === undefined) return async () => undefined;
  const { deliverSpans } = await import('./deliver-spans.js');
  // OTLP exporter: the path of a signal is appended to the endpoint.
  return deliverSpans(`${endpoint.replace(/(?<!\/)\/+$/, '')}/v1/traces`, headers, warn);
}
