import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { beginSpan, markFailed, type Span, type Traceparent, withinSpan } from '../../tracing/trace.js';

/** Begins the span of a request, by its route pattern, from its arrival on; it ends with the answer. */
export function requestSpan(
  { method, routeOptions, id }: FastifyRequest,
  reply: FastifyReply,
  causes: readonly Traceparent[],
): Span {
  const { url: route = 'unmatched' } = routeOptions;
  const span = beginSpan(`${method} ${route}`, {
    kind: 'SERVER',
    causes,
    startTime: Date.now() - reply.elapsedTime,
    attributes: { 'http.request.method': method, 'http.route': route, 'notebridge.request_id': id },
  });
  if (span.isRecording()) reply.raw.once('close', () => endRequestSpan(span, reply));
  return span;
}

/** A caller that disconnects first is not a failure: every reader of a stream does so in the end. */
function endRequestSpan(span: Span, { raw }: FastifyReply): void {
  if (raw.headersSent) span.setAttribute('http.response.status_code', raw.statusCode);
  if (!raw.writableFinished) span.setAttribute('notebridge.cut', true);
  if (raw.headersSent && raw.statusCode >= 500) markFailed(String(raw.statusCode), span);
  span.end();
}

/**
 * Runs the handlers of known callers within spans, which join the caller's trace. Requests without a known caller leave none:
 * strangers must not fill a collector, or name its traces.
 */
export function installRequestSpans(fastify: FastifyInstance, isTraced: (request: FastifyRequest) => boolean): void {
  fastify.addHook('preHandler', (request, reply, done) => {
    if (!isTraced(request)) return done();
    const { traceparent } = request.headers;
    withinSpan(requestSpan(request, reply, typeof traceparent === 'string' ? [traceparent] : []), done);
  });
}
