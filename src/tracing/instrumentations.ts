import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';

/** Probes and scrapes, which repeat all the time. */
const UNTRACED = /^\/(health\/|metrics$)/;

// Each patches its modules as they are loaded. Its spans go nowhere until `deliverSpans`.
new HttpInstrumentation({ ignoreIncomingRequestHook: ({ url = '' }) => UNTRACED.test(url) });
// Without a parent, the statements that look for due work would fill the collector.
new PgInstrumentation({ requireParentSpan: true, ignoreConnectSpans: true });
