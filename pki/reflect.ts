/**
 * The polyfill of @peculiar/x509, a second time: every file that uses it begins with `import "reflect-metadata"` and
 * this. In a lazily imported module the bundler runs ES modules before a bare CommonJS import that stands above them,
 * so the compiled binary needs the polyfill inside an ES module. Run from source it is the other way round: CommonJS
 * runs as soon as it is read, so there the bare import has to stand first.
 */
import "reflect-metadata";
