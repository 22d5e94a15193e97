//! Field descriptions from Python.

use std::sync::Arc;

use anybatch_core::example::Level;
use anybatch_core::image::Shape;
use anybatch_core::schema::{self, Dtype, Fallback, Field, Form};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[derive(FromPyObject)]
enum Default {
    Strings(Vec<Vec<u8>>),
    Numbers(Vec<u8>),
}

type Described = (String, String, String, String, usize, Option<Py<PyAny>>, bool);

#[pyclass(frozen, module = "anybatch._native")]
pub struct Schema {
    pub core: Arc<schema::Schema>,
}

#[pymethods]
impl Schema {
    /// From tuples (key, level, form, dtype, count, default, required).
    #[new]
    fn new(py: Python<'_>, fields: Vec<Described>) -> PyResult<Self> {
        let fields = fields.into_iter().map(|described| field(py, described)).collect::<PyResult<_>>()?;
        let core = schema::Schema::new(fields).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Schema { core: Arc::new(core) })
    }
}

fn field(py: Python<'_>, described: Described) -> PyResult<Field> {
    let (key, level, form, dtype, count, default, required) = described;
    let unknown = |what: &str, value: &str| PyValueError::new_err(format!("unknown {what} {value:?}"));
    Ok(Field {
        level: match &level[..] {
            "context" => Level::Context,
            "list" => Level::Lists,
            _ => return Err(unknown("level", &level)),
        },
        form: match &form[..] {
            "dense" => Form::Dense,
            "raw" => Form::Raw,
            "ragged" => Form::Ragged,
            _ => Form::Image(image_shape(&form).ok_or_else(|| unknown("form", &form))?),
        },
        dtype: Dtype::named(&dtype).ok_or_else(|| unknown("dtype", &dtype))?,
        default: match default.map(|default| default.extract::<Default>(py)).transpose()? {
            None => Fallback::None,
            Some(Default::Numbers(bytes)) => Fallback::Numbers(bytes),
            Some(Default::Strings(values)) => Fallback::Strings(values),
        },
        key,
        count,
        required,
    })
}

/// The shape in a form such as "image 224x224x3": height, width, channels.
fn image_shape(form: &str) -> Option<Shape> {
    let sizes = form.strip_prefix("image ")?.split('x').map(|size| size.parse().ok());
    match sizes.collect::<Option<Vec<usize>>>()?[..] {
        [height, width, channels] => Some(Shape { height, width, channels }),
        _ => None,
    }
}
