export { dumpOf } from '../../harness/database-dump.js';
