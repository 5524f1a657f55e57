import { Fhir } from 'fhir';

/** A resource, or a part of one. */
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** The JSON types and forms of primitive values (hl7.org/fhir/R4/datatypes.html), which the package leaves unchecked. */
const DATE = String.raw`\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?`;
const TIME = String.raw`T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-](0\d|1[0-4]):[0-5]\d)`;
const TEXT = /^[ \r\n\t]*\S[ \r\n\t\S]*$/;
const URI = /^\S+$/;
const FORMS: Readonly<Record<string, RegExp>> = {
  boolean: /^(true|false)$/,
  integer: /^(0|-?[1-9]\d{0,9})$/,
  positiveInt: /^[1-9]\d{0,9}$/,
  unsignedInt: /^(0|[1-9]\d{0,9})$/,
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

/** The JSON types of primitive values that are not strings. */
const JSON_TYPES: Readonly<Record<string, string>> = {
  ...{ boolean: 'boolean', integer: 'number', positiveInt: 'number', unsignedInt: 'number' },
};

const PACKAGE = new Fhir();

/**
 * The violations of FHIR R4 in a resource: of its structure, its required codes, the forms of its values, and the rules
 * of the resources that this service makes. Empty for a valid resource.
 */
export function fhirFaults(resource: object): string[] {
  const value = JSON.parse(JSON.stringify(resource)) as { [name: string]: Json };
  const forms: string[] = [];
  const { messages } = PACKAGE.validate(value, {
    errorOnUnexpected: true,
    onBeforeValidateProperty: (_, { _type }, place, found: Json) => {
      const form = FORMS[_type];
      const isWrong = (each: Json) => typeof each !== (JSON_TYPES[_type] ?? 'string') || !form?.test(String(each));
      if (form && [found].flat().some(isWrong)) forms.push(`${place} is not of the type ${_type}`);
      return [];
    },
  });
  const faults = messages.filter(({ severity }) => severity === 'fatal' || severity === 'error');
  return [
    ...faults.map(({ location, message }) => `${location}: ${message}`),
    ...forms,
    ...emptyParts(value),
    ...ruleFaults(value as unknown as Resource),
    ...misnamedEntries(value as unknown as Resource),
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
  readonly resource?: Resource;
  readonly search?: object;
  readonly request?: object;
  readonly response?: object;
}

/** The members of a resource that rules are about. */
interface Resource {
  readonly resourceType: string;
  readonly id?: string;
  readonly meta?: { readonly versionId?: string };
  readonly type: string;
  readonly total?: number;
  readonly entry?: readonly BundleEntry[];
  readonly kind?: string;
  readonly description?: string;
  readonly software?: object;
  readonly implementation?: object;
  readonly rest?: readonly {
    readonly resource?: readonly { type: string; searchParam?: readonly { name: string }[] }[];
  }[];
  readonly content?: readonly { readonly attachment?: { readonly data?: string; readonly contentType?: string } }[];
}

const isUnique = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

/** Rules of R4 by type of resource, for the kinds that this service makes: true if the resource keeps them. */
const RULES: Readonly<Record<string, Record<string, (resource: Resource) => boolean>>> = {
  Bundle: {
    'bdl-1: Bundle.total is only for a search or history': ({ type, total }) =>
      total === undefined || ['searchset', 'history'].includes(type),
    'bdl-2: Bundle.entry.search is only for a searchset': ({ type, entry = [] }) =>
      type === 'searchset' || entry.every(({ search }) => !search),
    'bdl-5: Bundle.entry must have a resource, request or response': ({ entry = [] }) =>
      entry.every(({ resource, request, response }) => resource ?? request ?? response),
    'bdl-7: Bundle.entry.fullUrl must be unique for each version': ({ type, entry = [] }) =>
      type === 'history' || isUnique(entry.map(({ fullUrl, resource }) => `${fullUrl} ${resource?.meta?.versionId}`)),
    'bdl-8: Bundle.entry.fullUrl must not lead to a version': ({ entry = [] }) =>
      entry.every(({ fullUrl = '' }) => !fullUrl.includes('/_history/')),
  },
  CapabilityStatement: {
    'cpb-2: description, software or implementation is missing': ({ description, software, implementation }) =>
      Boolean(description ?? software ?? implementation),
    'cpb-9: a resource must be described once': ({ rest = [] }) =>
      rest.every(({ resource = [] }) => isUnique(resource.map(({ type }) => type))),
    'cpb-12: names of search parameters must be unique': ({ rest = [] }) =>
      rest
        .flatMap(({ resource = [] }) => resource)
        .every(({ searchParam = [] }) => isUnique(searchParam.map(({ name }) => name))),
    'cpb-14: an instance must have an implementation': ({ kind, implementation }) =>
      kind !== 'instance' || implementation !== undefined,
  },
  DocumentReference: {
    'att-1: an attachment with data must have a contentType': ({ content = [] }) =>
      content.every(({ attachment }) => !attachment?.data || attachment.contentType !== undefined),
  },
};

/** The rules that a resource, or a resource in it, breaks. */
function ruleFaults(resource: Resource): string[] {
  const broken = Object.entries(RULES[resource.resourceType] ?? {}).filter(([, isKept]) => !isKept(resource));
  const parts = resource.resourceType === 'Bundle' ? (resource.entry ?? []).map((entry) => entry.resource) : [];
  return [...broken.map(([rule]) => rule), ...parts.flatMap((part) => (part ? ruleFaults(part) : []))];
}

/** Entries whose `fullUrl` is not that of their resource (hl7.org/fhir/R4/bundle.html#bundle-unique). */
function misnamedEntries({ resourceType, entry = [] }: Resource): string[] {
  if (resourceType !== 'Bundle') return [];
  return entry.flatMap(({ fullUrl = '', resource }, at) => {
    const isUrl = /^https?:\/\/./.test(fullUrl) && fullUrl.endsWith(`/${resource?.resourceType}/${resource?.id}`);
    const isRight = isUrl || fullUrl === `urn:uuid:${resource?.id}`;
    return isRight ? [] : [`Bundle.entry[${at}].fullUrl does not lead to its resource`];
  });
}
