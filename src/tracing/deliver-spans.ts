import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { parseKeyPairsIntoRecord, setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { version } from '../config/version.js';
import { withTimeout } from '../config/with-timeout.js';
import { PlainSpans } from './plain-spans.js';

/** Ends tracing, after a short wait for the delivery of the last spans. */
export type StopTracing = () => Promise<void>;

/** How long a stopping process waits for the delivery of its last spans. */
const SHUTDOWN_MS = 2_000;

/** Joins the traces of callers, and adds no header to calls, because the platform and subscribers need none. */
class CallersTraces extends W3CTraceContextPropagator {
  override inject(): void {}
}

/**
 * Delivers spans in batches, in the background, from a bounded queue. Spans that a slow collector does not accept in time
 * are dropped. Sampler, resource, batches and times are those of the standard variables (OTEL_TRACES_SAMPLER,
 * OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_…, OTEL_EXPORTER_OTLP_TIMEOUT), which the SDK reads itself.
 *
 * @param url the complete URL of the collector
 * @param headers the format of OTEL_EXPORTER_OTLP_HEADERS: `name=value` pairs, comma-separated
 * @param warn called once if spans cannot be delivered
 */
export function deliverSpans(url: string, headers: string | undefined, warn: (sentence: string) => void): StopTracing {
  let isTold = false;
  setGlobalErrorHandler((error) => {
    if (!isTold) warn(`traces are not taken by OTEL_EXPORTER_OTLP_ENDPOINT (${codeOf(error)}); this is said once`);
    isTold = true;
  });
  const exporter = new OTLPTraceExporter({ url, headers: parseKeyPairsIntoRecord(headers) });
  const own = resourceFromAttributes({ 'service.name': 'notebridge', 'service.version': version() });
  const provider = new BasicTracerProvider({
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new PlainSpans(exporter))],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new CallersTraces());
  return async () => {
    await withTimeout(provider.shutdown(), SHUTDOWN_MS, () => undefined).catch(() => undefined);
  };
}

/** A status or an error's code; never a message, which may quote the answer of the collector. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' || typeof code === 'number' ? String(code) : 'no answer';
}
