import { SpanKind } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';

/** The attributes that cannot contain personal data. The others have URLs, headers, addresses of callers and SQL. */
const SHOWN = [
  'http.request.method',
  'http.route',
  'http.response.status_code',
  'error.type',
  'db.system.name',
  'db.namespace',
];

/** Where this service calls. In the span of a request, they are the caller's Host header. */
const SHOWN_OF_CALLS = ['server.address', 'server.port'];

/** Exports spans without personal data, regardless of what instrumentation adds to them. */
export class PlainSpans implements SpanExporter {
  constructor(private readonly exporter: SpanExporter) {}

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.exporter.export(spans.map(plain), done);
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }
}

/** Names each field that it keeps, so that no event, message or `tracestate` of a caller is exported. */
function plain(span: ReadableSpan): ReadableSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const shown = span.kind === SpanKind.CLIENT ? [...SHOWN, ...SHOWN_OF_CALLS] : SHOWN;
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => ({ traceId, spanId, traceFlags }),
    parentSpanContext: span.parentSpanContext,
    startTime: span.startTime,
    endTime: span.endTime,
    duration: span.duration,
    ended: span.ended,
    status: { code: span.status.code },
    attributes: Object.fromEntries(Object.entries(span.attributes).filter(([name]) => shown.includes(name))),
    events: [],
    links: [],
    resource: span.resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
