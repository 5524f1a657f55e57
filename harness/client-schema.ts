import type { OpenAPIObject } from '@nestjs/swagger';
import { factory } from 'typescript';

// The package's types for require() are broken.
type OpenApiTypes = typeof import('openapi-typescript', { with: { 'resolution-mode': 'import' }});
const { default: typesOf, astToString, COMMENT_HEADER } = require('openapi-typescript') as OpenApiTypes;

/** client/schema.ts: the types of the API, for the client and the console. @param document its OpenAPI description */
export async function clientSchema(document: OpenAPIObject): Promise<string> {
  const types = await typesOf(JSON.stringify(document), {
    transform: ({ format }) => (format === 'binary' ? factory.createTypeReferenceNode('Blob') : undefined),
  });
  const posts = idempotentPosts(document).map((path) => `    ${JSON.stringify(path)},\n`);
  return `${COMMENT_HEADER}${astToString(types)}
/** The paths whose POST accepts an Idempotency-Key. */
export const IDEMPOTENT_POSTS: readonly string[] = [
${posts.join('')}];
`;
}

function idempotentPosts({ paths }: OpenAPIObject): string[] {
  const takesKey = (parameter: object) => 'name' in parameter && parameter.name === 'Idempotency-Key';
  return Object.keys(paths).filter((path) => paths[path]?.post?.parameters?.some(takesKey));
}
