import { Fhir } from 'fhir';

/** A resource, or a part of one. */
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** The JSON types and forms of primitive values (hl7.org/fhir/R4/datatypes.html), which the package leaves unchecked. */
const DATE = String.raw`\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?`;
const TIME = String.raw`T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-](0\d|1[0-4]):[0-5]\d)`;
const TEXT = /^[ \r\n\t\S]+$/;
const URI = /^\S+$/;
const FORMS: Readonly<Record<string, RegExp>> = {
  base64Binary: /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  canonical: URI,
  code: /^\S+( \S+)*$/,
  date: new RegExp(`^${DATE}$`),
  dateTime: new RegExp(`^${DATE}(${TIME})?$`),
  id: /^[A-Za-z0-9.-]{1,64}$/,
  instant: new RegExp(String.raw`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])${TIME}$`),
  markdown: TEXT,
  string: TEXT,
  uri: URI,
  url: URI,
};

const PACKAGE = new Fhir();

/**
 * The violations of FHIR R4 in a resource: of its structure, its required codes, the forms of its values, and the rules of
 * Bundles. Empty for a valid resource.
 */
export function fhirFaults(resource: object): string[] {
  const value = JSON.parse(JSON.stringify(resource)) as { [name: string]: Json };
  const forms: string[] = [];
  const { messages } = PACKAGE.validate(value, {
    errorOnUnexpected: true,
    onBeforeValidateProperty: (_, { _type }, place, found: Json) => {
      const form = FORMS[_type];
      const isWrong = (each: Json) => typeof each !== 'string' || !form?.test(each);
      if (form && [found].flat().some(isWrong)) forms.push(`${place} is not of the type ${_type}`);
      return [];
    },
  });
  const faults = messages.filter(({ severity }) => severity === 'fatal' || severity === 'error');
  return [
    ...faults.map(({ location, message }) => `${location}: ${message}`),
    ...forms,
    ...emptyParts(value),
    ...bundleFaults(value),
  ];
}

/** Empty texts, arrays and objects, and nulls, which FHIR forbids (hl7.org/fhir/R4/json.html). */
function emptyParts(value: Json, place = ''): string[] {
  if (value === null || value === '') return [`${place} is empty`];
  if (typeof value !== 'object') return [];
  const parts = Object.entries(value);
  if (parts.length === 0) return [`${place} is empty`];
  return parts.flatMap(([name, part]) => emptyParts(part, `${place}/${name}`));
}

interface BundleEntry {
  readonly fullUrl?: string;
  readonly resource?: { readonly id?: string };
  readonly search?: object;
}

/** Violations of the rules bdl-2 and bdl-7, and of what the specification says of `fullUrl` (hl7.org/fhir/R4/bundle.html). */
function bundleFaults(bundle: { [name: string]: Json }): string[] {
  if (bundle.resourceType !== 'Bundle') return [];
  const entries = (bundle.entry ?? []) as BundleEntry[];
  const urls = entries.map(({ fullUrl }) => fullUrl ?? '');
  const isMisnamed = ({ fullUrl = '', resource }: BundleEntry) =>
    !/^(https?:\/\/.+\/|urn:uuid:)[^/]+$/.test(fullUrl) || !fullUrl.endsWith(resource?.id ?? '/');
  return [
    ...(bundle.type !== 'searchset' && entries.some(({ search }) => search) ? ['bdl-2: search in another Bundle'] : []),
    ...(new Set(urls).size < urls.length ? ['bdl-7: a fullUrl occurs twice'] : []),
    ...entries.filter(isMisnamed).map((_, at) => `Bundle.entry[${at}].fullUrl does not lead to its resource`),
  ];
}
