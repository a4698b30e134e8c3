/* Captions photos with an exported model: the TensorFlow library alone, no Python.

   From the headers and the library in TensorFlow's wheel (docs/serving.md):

       TF=$(python -c "import tensorflow; print(tensorflow.sysconfig.get_lib())")
       cc deploy/caption.c -o caption -I$TF/include -L$TF -Wl,-rpath,$TF \
           -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2
       ./caption exports/ngsan/1 photo.jpg another.png
*/

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

#define SIGNATURE "serving_default"

static void fail(const char* what, const char* why) {
  fprintf(stderr, "error: %s: %s\n", what, why);
  exit(1);
}

static void check(const TF_Status* status, const char* what) {
  if (TF_GetCode(status) != TF_OK) fail(what, TF_Message(status));
}

/* === The names of a signature's tensors, from a serialized MetaGraphDef === */

typedef struct {
  const uint8_t* data;
  size_t size;
} Bytes;

static uint64_t read_varint(Bytes* rest) {
  uint64_t value = 0;
  for (int shift = 0; rest->size && shift < 64; shift += 7) {
    uint8_t byte = *rest->data++;
    rest->size--;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}

/* Takes the first field off a message, and returns its number; 0 at the end.
   `content` is that of a string or a message, and empty for numbers. */
static int read_field(Bytes* message, Bytes* content) {
  *content = (Bytes){message->data, 0};
  if (!message->size) return 0;
  uint64_t key = read_varint(message), size = 0;
  switch (key & 7) {
    case 0: read_varint(message); break;
    case 1: size = 8; break;
    case 2: size = content->size = read_varint(message); break;
    case 5: size = 4; break;
    default: fail("saved_model.pb", "it is damaged");
  }
  if (size > message->size) fail("saved_model.pb", "it is damaged");
  content->data = message->data;
  message->data += size;
  message->size -= size;
  return key >> 3;
}

static Bytes get(Bytes message, int number) {
  Bytes content;
  for (int found; (found = read_field(&message, &content));)
    if (found == number) return content;
  return (Bytes){NULL, 0};
}

/* The value of a key in field `number`, a map; its entries have key and value. */
static Bytes look_up(Bytes message, int number, const char* key) {
  Bytes entry;
  for (int found; (found = read_field(&message, &entry));) {
    Bytes name = get(entry, 1);
    if (found == number && name.size == strlen(key) && !memcmp(name.data, key, name.size))
      return get(entry, 2);
  }
  return (Bytes){NULL, 0};
}

/* The tensor of an input, 1, or an output, 2, of the signature. */
static TF_Output find(TF_Graph* graph, Bytes meta_graph, int side, const char* key) {
  Bytes signature = look_up(meta_graph, 5, SIGNATURE);
  Bytes name = get(look_up(signature, side, key), 1); /* OPERATION:INDEX */
  if (!name.size) fail(key, "the signature " SIGNATURE " has no such tensor");
  char* text = strndup((const char*)name.data, name.size);
  char* colon = strchr(text, ':');
  if (colon) *colon = 0;
  TF_Output output = {TF_GraphOperationByName(graph, text), colon ? atoi(colon + 1) : 0};
  if (!output.oper) fail(text, "the graph has no such operation");
  free(text);
  return output;
}

/* === Photos to captions === */

static void read_file(const char* path, TF_TString* content) {
  FILE* file = fopen(path, "rb");
  long size = -1;
  if (file && !fseek(file, 0, SEEK_END)) size = ftell(file);
  char* data = size < 0 ? NULL : malloc(size + 1);
  if (data) rewind(file);
  if (!data || fread(data, 1, size, file) != (size_t)size) fail(path, "cannot be read");
  fclose(file);
  TF_StringInit(content);
  TF_StringCopy(content, data, size);
  free(data);
}

int main(int count, char** arguments) {
  if (count < 3) fail("usage", "caption EXPORT PHOTO ...");
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, arguments[1], tags, 1, graph, buffer, status);
  check(status, arguments[1]);
  Bytes meta_graph = {buffer->data, buffer->length};
  TF_Output input = find(graph, meta_graph, 1, "image_bytes");
  TF_Output output = find(graph, meta_graph, 2, "captions");

  int64_t photos = count - 2;
  TF_Tensor* files =
      TF_AllocateTensor(TF_STRING, &photos, 1, photos * sizeof(TF_TString));
  TF_TString* contents = TF_TensorData(files);
  for (int i = 0; i < photos; i++) read_file(arguments[i + 2], &contents[i]);

  TF_Tensor* captions = NULL;
  TF_SessionRun(session, NULL, &input, &files, 1, &output, &captions, 1, NULL, 0, NULL,
                status);
  check(status, "captioning");
  const TF_TString* texts = TF_TensorData(captions);
  for (int i = 0; i < photos; i++)
    printf("%s: %.*s\n", arguments[i + 2], (int)TF_StringGetSize(&texts[i]),
           TF_StringGetDataPointer(&texts[i]));

  TF_DeleteTensor(files);
  TF_DeleteTensor(captions);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteBuffer(buffer);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
