// Prints as JSON what scripts/check-cycles.mjs finds below the folder that its first argument names.
import { findCycles } from '../../scripts/check-cycles.mjs';

console.log(JSON.stringify(findCycles(process.argv[2])));
