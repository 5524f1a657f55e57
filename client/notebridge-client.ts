// The entry of the package.
export { type Client, type ClientOptions, createClient } from './create-client.js';
export type { Schemas } from './methods.js';
export { type FieldFault, NotebridgeError, type ProblemMembers } from './notebridge-error.js';
export type { paths } from './schema.js';
export type { UploadBody } from './sending/send.js';
export type { UploadAnswer, UploadOptions, UploadPath } from './sending/upload.js';
export { type VerifyOptions, verifyWebhook, type WebhookEvent, type WebhookHeaders } from './verify-webhook.js';
export type { EventsOptions, FeedEvent } from './waiting/events.js';
export type { Waited } from './waiting/rest-of-work.js';
export type { WaitOptions } from './waiting/wait-for.js';
