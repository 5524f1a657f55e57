// Prints as JSON what a script says of the project in the folder that the second argument names.
import { findLicenceFaults } from '../../scripts/check-licences.mjs';
import { billOfMaterials } from '../../scripts/sbom.mjs';

const [, , what, root] = process.argv;
console.log(JSON.stringify(what === 'licences' ? findLicenceFaults(root) : billOfMaterials(root)));
