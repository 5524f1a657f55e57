// Prints as JSON what scripts/check-patterns.mjs finds below the folder that its first argument names.
import { findSlowPatterns } from '../../scripts/check-patterns.mjs';

console.log(JSON.stringify(findSlowPatterns(process.argv[2])));
