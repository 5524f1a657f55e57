import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/**
 * Spans of the service's own steps. Only the interface of OpenTelemetry is used here: until `startTracing` has been
 * called all of it does nothing. Attributes are words of the program, numbers and ids that this service made; never a URL,
 * an id of the EHR, a name or a text.
 */
const tracer = trace.getTracer('notebridge');

export type { Attributes, Span };

/** A traceparent (W3C Trace Context, 3.2), stored with work that another process may continue. */
export type Traceparent = string;

interface SpanOptions {
  kind?: keyof typeof SpanKind;
  attributes?: Attributes;
  /** The causing spans, newest first: joins the trace of the first, and links the others. Defaults to the current span. */
  causes?: readonly Traceparent[];
  /** Milliseconds since the Unix epoch. Defaults to now. */
  startTime?: number;
}

/** Begins a span that the caller ends. */
export function beginSpan(name: string, { kind = 'INTERNAL', causes, ...more }: SpanOptions = {}): Span {
  const [parent, ...others] = (causes ?? []).map(contextOf);
  const links = others.flatMap((other) => trace.getSpanContext(other) ?? []).map((each) => ({ context: each }));
  const within = causes === undefined ? context.active() : (parent ?? ROOT_CONTEXT);
  return tracer.startSpan(name, { kind: SpanKind[kind], links, ...more }, within);
}

/** Runs work within a span. Everything that the work starts or stores belongs to the span. */
export function withinSpan<T>(span: Span, work: () => T): T {
  return context.with(trace.setSpan(ROOT_CONTEXT, span), work);
}

/** Runs work in a new span, which ends with it. An error is marked, without its message. */
export async function inSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const span = beginSpan(name, options);
  try {
    return await withinSpan(span, work);
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

/** Adds attributes to the active span. */
export function annotate(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** Marks a span, by default the active one, as failed. @param type a word of the program */
export function markFailed(type: string, span = trace.getActiveSpan()): void {
  span?.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
}

/** The `traceparent` of a span, by default the active one; null without a span or without tracing. */
export function traceparentOf(span = trace.getActiveSpan()): Traceparent | null {
  const carrier: { traceparent?: Traceparent } = {};
  if (span) propagation.inject(trace.setSpan(ROOT_CONTEXT, span), carrier);
  return carrier.traceparent ?? null;
}

/** The context of a trace; a malformed `traceparent` counts as none. */
const contextOf = (traceparent: Traceparent) => propagation.extract(ROOT_CONTEXT, { traceparent });
