import { isGiven } from '../config/secret-files.js';

// Synchronous, because the next imports of main.ts load `http` and `pg`.
if (isGiven('OTEL_EXPORTER_OTLP_ENDPOINT')) require('./instrumentations.js');
