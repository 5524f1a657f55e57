import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ApiProperty, type OpenAPIObject } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { catchError, map, type Observable } from 'rxjs';
import { Problem } from '../../http/problem/problem.js';
import type { Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';

/** OpenAPI extension of a property: the scopes without which it is hidden. */
const VISIBLE_TO = 'x-visible-to';

/** The properties with {@link VisibleTo}. */
const marked: { model: object; property: string; scopes: readonly Scope[] }[] = [];

/** Hides a property of an answer from callers that lack one of the scopes. It must be nullable, optional, or a list. */
export function VisibleTo(...scopes: Scope[]): PropertyDecorator {
  return (model, property) => void marked.push({ model, property: String(property), scopes });
}

/** Prepares the description of hidden properties. The metadata of all models must have been loaded before. */
export function documentVisibility(): void {
  for (const { model, property, scopes } of marked) ApiProperty({ [VISIBLE_TO]: scopes } as object)(model, property);
}

interface Schema {
  $ref?: string;
  description?: string;
  nullable?: boolean;
  type?: string;
  items?: Schema;
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  [VISIBLE_TO]?: readonly Scope[];
}

/** A member that is hidden from some callers, or has such members. */
interface Member {
  scopes: readonly Scope[];
  /** Shown instead; undefined if the member is left out. */
  instead: null | readonly [] | undefined;
  members: Shape;
}

/** The members of an answer, or of the items of a list, that are hidden from some callers. */
type Shape = Map<string, Member>;

interface Described {
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
  operationId?: string;
}

/** Reduces answers to the fields that the caller's scopes show, according to the API's description. */
@Injectable()
export class AnswerVisibility {
  private readonly models = new Map<string, Shape>();
  private readonly operations = new Map<string, Shape>();
  private schemas: Record<string, Schema> = {};

  /** Reads the description of all operations and completes it in words. @throws {TypeError} for a member that cannot be hidden */
  learn(document: OpenAPIObject): void {
    this.models.clear();
    this.schemas = document.components?.schemas as Record<string, Schema>;
    for (const item of Object.values(document.paths)) {
      for (const { operationId = '', responses } of Object.values(item as Record<string, Described>)) {
        const contents = Object.entries(responses).flatMap(([status, { content }]) =>
          status < '3' && content ? Object.values(content) : [],
        );
        const shapes = contents.map(({ schema }) => this.shapeOf(schema));
        this.operations.set(operationId, new Map(shapes.flatMap((shape) => [...shape])));
      }
    }
    const isKnown = ({ model, property }: (typeof marked)[number]) =>
      this.modelOf(model.constructor.name).has(property);
    const unknown = marked.find((each) => !isKnown(each));
    if (unknown) throw new TypeError(`No description of ${unknown.model.constructor.name}.${unknown.property}`);
  }

  /** Reduces an operation's answer to the fields that the caller may see. @param operation its id in the description */
  ofOperation<T>(operation: string, caller: Principal, answer: T): T {
    const shape = this.operations.get(operation);
    if (!shape) throw new TypeError(`The API's description lacks ${operation}`);
    return reduced(answer, shape, caller.scopes);
  }

  /** Reduces a value of a streamed answer to the fields that the caller may see. */
  ofModel<T>(model: new () => object, caller: Principal, value: T): T {
    return reduced(value, this.modelOf(model.name), caller.scopes);
  }

  private modelOf(name: string): Shape {
    const known = this.models.get(name);
    if (known) return known;
    const shape: Shape = new Map();
    this.models.set(name, shape);
    for (const [property, member] of this.shapeOf(this.schemas[name])) shape.set(property, member);
    return shape;
  }

  private shapeOf(schema: Schema | undefined): Shape {
    const { $ref, items, allOf = [], properties = {}, required = [] } = schema ?? {};
    if ($ref !== undefined) return this.modelOf($ref.slice($ref.lastIndexOf('/') + 1));
    const shape: Shape = new Map((items ? [items] : allOf).flatMap((each) => [...this.shapeOf(each)]));
    for (const [name, property] of Object.entries(properties)) {
      const scopes = property[VISIBLE_TO] ?? [];
      const members = this.shapeOf(property);
      if (scopes.length === 0 && members.size === 0) continue;
      shape.set(name, { scopes, members, instead: describeHiding(name, property, scopes, required.includes(name)) });
    }
    return shape;
  }
}

/** Adds to the description the value that callers without the scopes see, and returns it. */
function describeHiding(
  name: string,
  property: Schema,
  scopes: readonly Scope[],
  isRequired: boolean,
): Member['instead'] {
  if (scopes.length === 0) return undefined;
  const [word, instead] = (() => {
    if (!isRequired) return ['Absent', undefined] as const;
    if (property.nullable) return ['Null', null] as const;
    if (property.type === 'array') return ['Empty', []] as const;
    throw new TypeError(`${name} cannot be hidden: it is neither optional, nullable nor a list`);
  })();
  const text = `${word} without ${scopes.map((scope) => `\`${scope}\``).join(' and ')}`;
  property.description = property.description ? `${property.description}. ${text}` : text;
  return instead;
}

function reduced<T>(value: T, shape: Shape, scopes: ReadonlySet<Scope>): T {
  if (shape.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => reduced(item, shape, scopes)) as T;
  const shown = { ...value } as Record<string, unknown>;
  for (const [name, { scopes: needed, instead, members }] of shape) {
    if (!(name in shown)) continue;
    if (needed.every((scope) => scopes.has(scope))) shown[name] = reduced(shown[name], members, scopes);
    else if (instead === undefined) delete shown[name];
    else shown[name] = instead;
  }
  return shown as T;
}

/** Reduces every answer of a controller, and the platform's words in problems. */
@Injectable()
export class VisibilityInterceptor implements NestInterceptor {
  constructor(private readonly visibility: AnswerVisibility) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (!principal) return next.handle();
    const operation = operationId(context.getClass().name, context.getHandler().name);
    return next.handle().pipe(
      map((answer: unknown) => this.visibility.ofOperation(operation, principal, answer)),
      catchError((error: unknown) => {
        throw error instanceof Problem && !principal.scopes.has('notes:read') ? withoutPlatformMessage(error) : error;
      }),
    );
  }
}

/** The id of an operation in the API's description. */
export const operationId = (controller: string, method: string) => `${controller.replace(/Controller$/, '')}.${method}`;

function withoutPlatformMessage(problem: Problem): Problem {
  const { type, detail, more } = problem;
  if (more.extensions?.platformMessage === undefined) return problem;
  return new Problem(type, detail, { ...more, extensions: { ...more.extensions, platformMessage: null } });
}
