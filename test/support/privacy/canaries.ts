export * from '../../../harness/canaries.js';
